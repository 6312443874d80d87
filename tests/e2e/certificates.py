"""Certificate authorities for tests, made with the program openssl."""
import pathlib
import subprocess


class Authority:
    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file, self.key = self.folder / (name + ".pem"), self.folder / (name + ".key")
        self.openssl("req", "-x509", *self.new_key(self.key), "-days", "2", "-subj", "/CN=" + name, "-out", self.file)

    @staticmethod
    def openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)

    @staticmethod
    def new_key(path):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path)

    def issue(self, folder, name, subjects):
        """Writes folder/name.pem and folder/name.key. `subjects`: "DNS:localhost,IP:127.0.0.1"."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / (name + ".pem"), folder / (name + ".key")
        request, extension = self.folder / (name + ".csr"), self.folder / (name + ".ext")
        self.openssl("req", *self.new_key(key), "-subj", "/CN=" + name, "-out", request)
        extension.write_text("subjectAltName=" + subjects)
        self.openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.key, "-CAcreateserial", "-days",
                     "2", "-extfile", extension, "-out", certificate)
        return certificate, key
