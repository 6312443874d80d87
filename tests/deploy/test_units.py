"""The systemd units: what a program needs is there, and what a unit can take away without harm is taken away."""
import pathlib
import shutil
import subprocess
import unittest

UNITS = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "systemd"


def settings(unit):
    """The [Service] section: {name: [values in order]}."""
    found, section = {}, ""
    for line in unit.read_text().splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and line[0] not in "#;":
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


class UnitTest(unittest.TestCase):
    def each(self):
        units = sorted(UNITS.glob("*.service"))
        self.assertEqual([u.name for u in units], ["fusion-worker.service", "fusiond.service"])
        for unit in units:
            with self.subTest(unit=unit.name):
                yield settings(unit)

    def test_temporary_files_can_be_written(self):
        # ProtectSystem=strict makes /tmp read-only, where builds and measurements put their files.
        for service in self.each():
            self.assertEqual(service["ProtectSystem"], ["strict"])
            self.assertEqual(service.get("PrivateTmp"), ["yes"])

    def test_gpus_can_be_opened_and_other_devices_cannot(self):
        for service in self.each():
            self.assertNotIn("PrivateDevices", service, "it hides /dev/nvidia* and /dev/dri")
            self.assertEqual(service.get("DevicePolicy"), ["closed"])
            allowed = service.get("DeviceAllow", [])
            for group in ("char-nvidia*", "char-drm"):
                self.assertIn(group + " rw", allowed)

    def test_no_core_dumps_and_no_new_privileges(self):
        for service in self.each():
            self.assertEqual(service.get("LimitCORE"), ["0"])
            self.assertEqual(service.get("NoNewPrivileges"), ["yes"])

    def test_the_server_may_make_control_groups(self):
        service = settings(UNITS / "fusiond.service")
        self.assertEqual(service.get("Delegate"), ["memory pids"])
        self.assertNotIn("ProtectControlGroups", service, "it makes them read-only")

    def test_processes_can_confine_themselves(self):
        # Workers and compilations use seccomp and Landlock, which a filter of the unit's would have to let pass.
        for service in self.each():
            for filtered in service.get("SystemCallFilter", []):
                self.assertIn("@sandbox", filtered)
            self.assertNotIn("--unconfined", " ".join(service["ExecStart"]))

    def test_systemd_understands_them(self):
        tool = shutil.which("systemd-analyze")
        if tool is None:
            self.skipTest("systemd-analyze is not installed")
        for unit in sorted(UNITS.glob("*.service")):
            out = subprocess.run([tool, "verify", unit], capture_output=True, text=True)
            self.assertNotIn("Unknown", out.stderr)
            self.assertNotIn("Failed to parse", out.stderr)


if __name__ == "__main__":
    unittest.main()
