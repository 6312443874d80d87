"""A network that fails: passes the connections of a Unix socket on to another one, late, or not at all."""
import os
import socket
import threading
import time


class Proxy:
    """Listens on `path` and forwards to `target`. `delay_s` holds each piece back; while `parted`, nothing passes in
    either direction and connections stay open, as when a cable is pulled. Cut() breaks every connection."""

    def __init__(self, path, target):
        self.path, self.target = str(path), str(target)
        self.delay_s, self.parted = 0.0, False
        self.lock, self.connections, self.stopping = threading.Lock(), [], False
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while not self.stopping:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                server.connect(self.target)
            except OSError:
                client.close()
                server.close()
                continue
            with self.lock:
                self.connections.append((client, server))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source, sink):
        try:
            while True:
                piece = source.recv(1 << 16)
                if not piece:
                    break
                while self.parted and not self.stopping:
                    time.sleep(0.01)
                if self.delay_s:
                    time.sleep(self.delay_s)
                sink.sendall(piece)
        except OSError:
            pass
        for end in (source, sink):
            shut(end)

    def cut(self):
        with self.lock:
            pairs, self.connections = self.connections, []
        for pair in pairs:
            for end in pair:
                shut(end)

    def stop(self):
        self.stopping = True
        self.listener.close()
        self.cut()
        os.unlink(self.path)


def shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:  # it is shut already
        pass
