"""DNS and HTTPS servers for the test of the image, in the network of a container.

usage: servers.py CERTIFICATE KEY LOG

The DNS server answers that each name has the address 127.0.0.1. The HTTPS server serves a JWK Set at /keys on port 8443, and writes a line
for each request to LOG.
"""

import http.server
import json
import socket
import ssl
import sys
import threading

# The example of RFC 7517, appendix A.1.
KEY = {
    "kty": "EC", "crv": "P-256", "kid": "1", "use": "sig",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
}
TYPE_A = 1


def answer(query):
    """Returns the response to a DNS query with one question."""
    end = query.index(0, 12) + 5
    question = query[12:end]
    has_address = int.from_bytes(question[-4:-2], "big") == TYPE_A
    header = query[:2] + b"\x85\x80" + (1).to_bytes(2, "big") + has_address.to_bytes(2, "big") + bytes(4)
    # A pointer to the name in the question, the type, the class, and a time to live of a minute.
    record = b"\xc0\x0c" + question[-4:] + (60).to_bytes(4, "big") + b"\x00\x04" + socket.inet_aton("127.0.0.1")
    return header + question + (record if has_address else b"")


def serve_names(server):
    while True:
        query, client = server.recvfrom(512)
        server.sendto(answer(query), client)


class Keys(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"keys": [KEY]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        with open(sys.argv[3], "a") as log:
            print(format % arguments, file=log)


def main():
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 53))
    threading.Thread(target=serve_names, args=[names], daemon=True).start()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 8443), Keys)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    open(sys.argv[3], "w").close()
    server.serve_forever()


main()
