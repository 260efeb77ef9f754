import HTTPServer
import TestSupport
import Testing

@Suite(.exclusive) struct PeerTests {
    @Test(arguments: [
        ("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "2001:db8::7"), ("2001:DB8:0::7", "2001:db8::7"),
        ("255.255.255.255", "255.255.255.255"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("", ""), ("a name", ""), ("192.0.2.7:80", ""),
    ])
    func headHasThePeerOfItsConnection(peer: String, expected: String) throws {
        let peers = Box<[String]>([])
        let server = try TestServer(peer: peer) { router in
            router.admission = { head in
                let peer = head.peer
                peers.update { $0.append(peer) }
                return .admit(headers: [])
            }
        }
        let connection = try server.connect()
        for _ in 0..<2 {
            try connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try connection.readResponse().status == 404)
        }
        #expect(peers.value == [expected, expected])
    }

    @Test func everyHeadHasTheContextOfItsConnection() throws {
        let context = Box(7)
        let found = Box<[Bool]>([])
        let server = try TestServer(context: context) { router in
            router.admission = { head in
                let isSame = head.connectionContext === context
                found.update { $0.append(isSame) }
                return .admit(headers: [])
            }
        }
        let connection = try server.connect()
        for _ in 0..<2 {
            try connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try connection.readResponse().status == 404)
        }
        #expect(found.value == [true, true])
    }
}
