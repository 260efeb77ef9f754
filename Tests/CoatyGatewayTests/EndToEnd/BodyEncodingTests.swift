import Foundation
import TestSupport
import Testing

/// Request bodies with a content coding, another charset than UTF-8, or a byte order mark.
@Suite(.exclusive) struct BodyEncodingTests {
    private static let bodies: [(path: String, type: String, body: String)] = [
        ("POST /v1/advertise", "application/json", #"{"object":\#(Scene.job("n"))}"#),
        ("POST /v1/discover?timeout=1", "application/json", #"{"coreTypes":["Task"]}"#),
        ("POST /v1/batch", "application/json", #"[{"event":"deadvertise","data":{"objectIds":["x"]}}]"#),
        ("POST /v1/batch", "application/x-ndjson", #"{"event":"deadvertise","data":{"objectIds":["x"]}}"#),
        ("POST /v1/io/nodes", "application/json", #"{"contextName":"c","name":"n","ioSources":[]}"#),
        ("POST /v1/access/check", "application/json", #"{"verb":"read","pattern":"objects"}"#),
        ("PUT /v1/routing/contexts/\(context)/rules", "application/json", #"{"rules":[]}"#),
        ("PATCH /v1/routing/contexts/\(context)", "application/merge-patch+json", #"{"name":"m"}"#),
        ("POST /v1/io/sources/\(context)/values", "application/json", "1"),
    ]
    private static let context = "5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e"

    private static func send(
        _ request: (path: String, type: String, body: String),
        to gateway: GatewayProcess,
        parameter: String = "",
        coding: String? = nil,
        _ encode: (String) -> [UInt8] = { Array($0.utf8) }
    ) throws -> RawConnection.Response {
        let body = encode(request.body)
        let coding = coding.map { "Content-Encoding: \($0)\r\n" } ?? ""
        let connection = try RawConnection(port: gateway.port)
        try connection.send(
            "\(request.path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: \(request.type)\(parameter)\r\n\(coding)"
                + "Content-Length: \(body.count)\r\n\r\n"
        )
        try connection.send(body)
        return try connection.readResponse()
    }

    @Test func everyJSONBodyMayHaveAMarkAndMustBeUTF8() throws {
        let scene = try Scene()
        for request in Self.bodies {
            let plain = try Self.send(request, to: scene.gateway)
            #expect(plain.problem != "malformed-json" && plain.status != 415, "\(request) \(plain.text)")
            for parameter in ["; charset=utf-8", ";charset=\"UTF-8\"", "; charset=us-ascii; x=y"] {
                let same = try Self.send(request, to: scene.gateway, parameter: parameter)
                #expect(same.problem != "malformed-json" && same.status != 415, "\(request) \(same.text)")
            }
            let marked = try Self.send(request, to: scene.gateway) { [0xEF, 0xBB, 0xBF] + Array($0.utf8) }
            #expect(marked.problem != "malformed-json" && marked.status != 415, "\(request) \(marked.text)")

            for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32] {
                let wide = try Self.send(request, to: scene.gateway) { Array($0.data(using: encoding) ?? Data()) }
                // One ASCII character without a mark is valid in no encoding.
                let detail = wide.json?["detail"] as? String ?? ""
                #expect(wide.status == 400 && detail.contains("UTF-16"), "\(request) \(encoding) \(wide.text)")
            }
            let latin = try Self.send(request, to: scene.gateway, parameter: "; charset=ISO-8859-1")
            #expect(latin.status == 415 && latin.headers["accept-encoding"] == nil, "\(request) \(latin.text)")
            #expect((latin.json?["detail"] as? String)?.contains("ISO-8859-1") == true)

            let coded = try Self.send(request, to: scene.gateway, coding: "gzip")
            #expect(coded.status == 415 && coded.headers["accept-encoding"] == "identity", "\(request) \(coded.text)")
            #expect((coded.json?["detail"] as? String)?.contains("gzip") == true)
            #expect(coded.problem == "unsupported-media-type")
            #expect(try Self.send(request, to: scene.gateway, coding: "identity").status != 415)
        }
    }

    /// By default, `Invoke-RestMethod` of Windows PowerShell sends texts as ISO-8859-1 without a charset, and a form if there is
    /// no `-ContentType`. `Out-File` writes UTF-16 with a mark.
    @Test func bodiesOfPowerShellAreTakenOrSayWhatIsWrong() throws {
        let scene = try Scene()
        let json = "application/json"
        let advertise = (path: "POST /v1/advertise", type: json, body: #"{"object":\#(Scene.job("Tür"))}"#)
        let latin = try Self.send(advertise, to: scene.gateway) { Array($0.data(using: .isoLatin1) ?? Data()) }
        #expect(latin.status == 400 && latin.problem == "malformed-json", "\(latin.text)")
        #expect((latin.json?["detail"] as? String)?.contains("not UTF-8") == true, "\(latin.text)")
        let file = try Self.send(advertise, to: scene.gateway) {
            [0xFF, 0xFE] + Array($0.data(using: .utf16LittleEndian) ?? Data())
        }
        #expect(file.status == 400 && file.text.contains("UTF-16"), "\(file.text)")
        let form = try Self.send(
            (advertise.path, "application/x-www-form-urlencoded", "object=System.Collections.Hashtable"),
            to: scene.gateway
        )
        #expect(form.status == 415 && form.text.contains(json), "\(form.text)")
        let utf8 = try Self.send(advertise, to: scene.gateway, parameter: "; charset=utf-8") {
            [0xEF, 0xBB, 0xBF] + Array($0.utf8)
        }
        #expect(utf8.status == 202, "\(utf8.text)")
        #expect(try scene.agent.waitFor { $0.topic.contains("/ADV:Task/") }.text == advertise.body)
    }

    @Test func aMarkIsNotPublished() throws {
        let scene = try Scene()
        let body = #"{"object":\#(Scene.job("marked"))}"#
        #expect(try scene.gateway.post("/v1/advertise", "\u{FEFF}" + body).status == 202)
        #expect(try scene.agent.waitFor { $0.topic.contains("/ADV:Task/") }.text == body)
    }

    @Test func bytesAreTakenAsTheyAre() throws {
        let scene = try Scene()
        try scene.agent.subscribe("raw/#")
        let request = (path: "POST /v1/raw/raw%2Fx", type: "application/octet-stream", body: "\u{FEFF}x")
        _ = try Self.send(request, to: scene.gateway)
        #expect(try scene.agent.waitFor { $0.topic == "raw/x" }.payload == Array("\u{FEFF}x".utf8))
        #expect(try Self.send(request, to: scene.gateway, coding: "br").status == 415)
    }
}
