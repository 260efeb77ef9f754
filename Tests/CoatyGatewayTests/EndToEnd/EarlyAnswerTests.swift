import Foundation
import TestSupport
import Testing

/// The clients of Python, and curl, with bodies that the gateway refuses before it has read them.
@Suite(.exclusive) struct EarlyAnswerTests {
    private static let token = "0123456789abcdef"

    /// Sends bodies of 9 MB with each client, and prints the client, the path and the status, or the error.
    private static let script = """
        import http.client, ssl, sys, urllib.error, urllib.request, warnings
        import httpx, requests

        base, token, ca = sys.argv[1:]
        body = b"x" * (9 << 20)
        context = ssl.create_default_context(cafile=ca) if base.startswith("https") else None

        def urllib_client(path, headers):
            request = urllib.request.Request(base + path, data=body, headers=headers)
            try:
                return urllib.request.urlopen(request, timeout=30, context=context).status
            except urllib.error.HTTPError as error:
                return error.code

        def chunked_client(path, headers):
            host = base.split("//")[1]
            secure = dict(context=context) if context else {}
            connection = (http.client.HTTPSConnection if context else http.client.HTTPConnection)(host, timeout=30, **secure)
            pieces = (body[start:start + 65536] for start in range(0, len(body), 65536))
            connection.request("POST", path, body=pieces, headers=headers, encode_chunked=True)
            return connection.getresponse().status

        def requests_client(path, headers):
            return requests.post(base + path, data=body, headers=headers, verify=ca, timeout=30).status_code

        def httpx_client(path, headers):
            return httpx.post(base + path, content=body, headers=headers, verify=context or False, timeout=30).status_code

        json = {"Content-Type": "application/json"}
        known = json | {"Authorization": f"Bearer {token}"}
        cases = [
            ("/v1/advertise", known), ("/v1/advertise", json), ("/v1/nothing", known), ("/v1/info", known),
            ("/v1/advertise", known | {"Origin": "http://other.example"}),
            ("/v1/advertise", known | {"Connection": "Upgrade", "Upgrade": "websocket"}),
        ]
        for client in (urllib_client, chunked_client, requests_client, httpx_client):
            statuses = []
            for path, headers in cases:
                try:
                    statuses.append(client(path, headers))
                except Exception as error:
                    statuses.append(repr(error))
            print(client.__name__, *statuses)
        """

    @Test(arguments: [false, true])
    func clientsSeeTheRefusalOfALargeBody(isEncrypted: Bool) throws {
        let python = try TestProgram.pythonWithHTTPClients.path()
        let certificates = try Certificates()
        let gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0"] + (isEncrypted ? certificates.flags : []),
            environment: ["COATY_GATEWAY_TOKEN": Self.token]
        )
        let url = "\(isEncrypted ? "https" : "http")://127.0.0.1:\(gateway.port)"
        let authority = certificates.path("ca.pem")
        let clients = try ChildProcess(python, ["-c", Self.script, url, Self.token, authority])
        #expect(try clients.waitForEnd() == 0)
        let statuses = "413 401 404 405 403 421"
        for client in ["urllib", "chunked", "requests", "httpx"] {
            #expect(clients.output.contains("\(client)_client \(statuses)\n"), "\(clients.output)")
        }
        let file = certificates.directory.appending(path: "body")
        try Data(count: 9 << 20).write(to: file)
        for expect in ["Expect: 100-continue", "Expect:"] {
            let curl = try ChildProcess(
                TestProgram.curl.path(),
                [
                    "-s", "--max-time", "30", "--cacert", authority, "-H", expect, "-H",
                    "Content-Type: application/json",
                    "-H", "Authorization: Bearer \(Self.token)", "--data-binary", "@\(file.path)", "-w", "%{http_code}",
                    url + "/v1/advertise",
                ]
            )
            #expect(try curl.waitForEnd() == 0)
            #expect(curl.output.contains("content-too-large") && curl.output.hasSuffix("413"), "\(curl.output)")
        }
    }

    @Test func clientWithoutTLSSeesWhyItIsRefused() throws {
        let certificates = try Certificates()
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"] + certificates.flags)
        let connection = try RawConnection(port: gateway.port)
        try connection.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(9 << 20)\r\n\r\n")
        try connection.send(Array(repeating: UInt8(ascii: "x"), count: 9 << 20))
        #expect(try connection.readResponse().json?["type"] as? String == "urn:coaty-gateway:problem:tls-required")
    }
}
