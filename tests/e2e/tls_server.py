"""A server with TLS on a port, for tests whose callers come over the network."""
import pathlib
import re

import certificates
import harness


class TlsServerTest(harness.ServerTest):
    """`address` is the server's, `authority` what its certificate is signed by."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(harness.tempfile.mkdtemp(prefix="fusion-e2e-"))
        cls.addClassCleanup(harness.shutil.rmtree, cls.folder, ignore_errors=True)
        cls.authority = certificates.Authority(cls.folder / "ca", "ca")
        certificate, key = cls.authority.issue(cls.folder / "tls", "server", "DNS:localhost")
        cls.server = harness.Server(cls.folder, *cls.server_args, "--listen", "localhost:0", "--tls-cert", certificate,
                                    "--tls-key", key)
        cls.addClassCleanup(cls.server.stop)
        cls.server.start()
        cls.address = re.search(r"addresses=\S*?(localhost:\d+)", cls.server.log_text()).group(1)
