"""Downloads from a server of the test's own: whole, corrupt, truncated, absent, mirrored; progress on stderr only."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from data import InputError, download, images, load, mnist

CONTENT = bytes(range(256)) * 400
SHA = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        body = {
            "/whole": CONTENT,
            "/corrupt": CONTENT[:-1] + b"?",
            "/short": CONTENT[:-500],
            "/cut": CONTENT[:5000],
        }.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT) if self.path == "/cut" else len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(folder):
    with HTTPServer(("127.0.0.1", 0), Handler) as running:
        running.asked = []
        running.url = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_whole_file_is_kept_and_not_fetched_again(server, capsys):
    path = download.download([f"{server.url}/whole"], "set.gz", SHA)
    assert path.read_bytes() == CONTENT
    assert path.parent == download.cache()
    assert download.download([f"{server.url}/whole"], "set.gz", SHA) == path
    assert server.asked == ["/whole"]
    out, err = capsys.readouterr()
    assert out == ""
    assert "downloading set.gz" in err


@pytest.mark.parametrize("kind", ["corrupt", "short", "cut"])
def test_damaged_download_is_refused_and_not_kept(server, kind):
    with pytest.raises(
        InputError, match=rf"downloading set.gz failed .*/{kind}: .*put the file in the folder that SADDLECHECK"
    ):
        download.download([f"{server.url}/{kind}"], "set.gz", SHA)
    assert download.cached("set.gz", SHA) is None
    assert not list(download.cache().glob("*"))


def test_corrupt_download_says_so(server):
    with pytest.raises(InputError, match="corrupt or truncated, its sha256 is not"):
        download.download([f"{server.url}/corrupt"], "set.gz", SHA)


def test_next_mirror_is_taken(server):
    urls = [f"{server.url}/absent", f"{server.url}/corrupt", f"{server.url}/whole"]
    assert download.download(urls, "set.gz", SHA).read_bytes() == CONTENT
    assert server.asked == ["/absent", "/corrupt", "/whole"]


def test_damaged_copy_in_the_cache_is_fetched_again(server):
    path = download.download([f"{server.url}/whole"], "set.gz", SHA)
    path.write_bytes(CONTENT[:-1])
    assert download.cached("set.gz", SHA) is None
    assert download.download([f"{server.url}/whole"], "set.gz", SHA).read_bytes() == CONTENT


def test_absent_file_and_no_server(server):
    with pytest.raises(InputError, match="HTTPError"):
        download.download([f"{server.url}/absent"], "set.gz", SHA)
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match="ConnectionError"):
        download.download([f"{server.url}/whole"], "set.gz", SHA)


def test_sets_go_to_their_addresses_when_nothing_is_at_hand(server, monkeypatch):
    monkeypatch.setattr(images, "CIFAR_URLS", (f"{server.url}/corrupt",))
    with pytest.raises(InputError, match=r"downloading cifar-10-python.tar.gz failed .* corrupt or truncated"):
        load("cifar10", P=10)
    monkeypatch.setattr(mnist, "MNIST", mnist.IdxSet("mnist", (f"{server.url}/",), ("",), mnist.MNIST.splits))
    with pytest.raises(InputError, match=r"downloading mnist-train-images-idx3-ubyte.gz failed"):
        load("mnist", P=10)
    monkeypatch.setattr(
        mnist, "FASHION", mnist.IdxSet("fashion_mnist", (f"{server.url}/",), ("",), mnist.FASHION.splits)
    )
    with pytest.raises(
        InputError, match=r"P = 2002 needs 1001 patterns .* whole set: downloading fashion_mnist-train-images"
    ):
        load("fashion-mnist", P=2002)
    assert server.asked == ["/corrupt", "/train-images-idx3-ubyte.gz", "/train-images-idx3-ubyte.gz"]
