import Foundation
import TestSupport
import Testing

extension VisibilityTests {
    // MARK: - Reads

    @Test func onlyVisibleObjectsAreListedAndCounted() throws {
        let scene = try AccessScene(Self.file)
        let (own, other, unknown) = (AccessScene.id(), AccessScene.id(), AccessScene.id())
        try scene.advertise(AccessScene.lamp("own", site: "hall-1", id: own))
        try scene.advertise(AccessScene.lamp("other", site: "hall-2", id: other, Self.secret))
        try waitUntil("the objects are known") {
            try Set(ids(scene.get("/v1/objects", as: "admin"))).isSuperset(of: [own, other])
        }
        for query in [
            "", "?objectType=com.example.Lamp", "?limit=1&offset=0", "?order=-name",
            "?filter=" + #"["name",["Exists"]]"#.percentEncoded,
        ] {
            let list = try scene.get("/v1/objects\(query)", as: "hall-1")
            #expect(try ids(list) == [own], "\(query)")
            #expect(list.json?["total"] as? Int == 1 && list.json?["filtered"] as? Bool == true, "\(list.text)")
        }
        let probing = try scene.get("/v1/objects?filter=" + #"["secret",["Exists"]]"#.percentEncoded, as: "hall-1")
        #expect(probing.json?["total"] as? Int == 0)
        let all = try scene.get("/v1/objects?objectType=com.example.Lamp", as: "admin")
        #expect(all.json?["total"] as? Int == 2 && all.json?["filtered"] == nil)
        #expect(try scene.get("/v1/objects/\(own)", as: "hall-1").status == 200)
        let hidden = try scene.get("/v1/objects/\(other)", as: "hall-1")
        let missing = try scene.get("/v1/objects/\(unknown)", as: "hall-1")
        #expect(hidden.status == 404 && hidden.text == missing.text)
        #expect(commonHeaders(hidden) == commonHeaders(missing))
        for path in ["/v1/objects", "/v1/objects/\(own)", "/v1/objects/\(unknown)"] {
            let refused = try scene.get(path, as: "nobody")
            #expect(refused.status == 403 && refused.problem == "forbidden", "\(path)")
        }
    }

    private func commonHeaders(_ response: RawConnection.Response) -> [String: String] {
        response.headers.filter { !["date", "x-request-id"].contains($0.key) }
    }

    @Test func theStatusNamesNoOtherClients() throws {
        let scene = try AccessScene(Self.file)
        let own = try scene.get("/v1/status", as: "hall-1")
        #expect(own.status == 200 && own.json?["slowConsumers"] == nil)
        #expect(try scene.get("/v1/status", as: "admin").json?["slowConsumers"] is [Any])
        #expect(try scene.get("/v1/status", as: "nobody").problem == "forbidden")
    }

    // MARK: - Publications

    @Test func batchPublicationsAreAuthorizedIndividually() throws {
        let scene = try AccessScene(Self.file)
        let (own, other) = (lamp("own", "hall-1"), lamp("other", "hall-2"))
        let foreign = AccessScene.lamp("foreign", site: "hall-1", type: "org.other.Lamp")
        let elements = [
            (#"{"event":"advertise","data":{"object":\#(own)}}"#, 202),
            (#"{"event":"advertise","data":{"object":\#(other)}}"#, 403),
            (#"{"event":"advertise","data":{"object":\#(foreign)}}"#, 403),
            (#"{"event":"channel","channelId":"c","data":{"objects":[\#(own),\#(other)]}}"#, 403),
            (#"{"event":"deadvertise","data":{"objectIds":["unknown"]}}"#, 403),
            (#"{"event":"channel","channelId":"c","data":{"object":\#(own)}}"#, 202),
        ]
        let answer = try scene.post("/v1/batch", "[\(elements.map(\.0).joined(separator: ","))]", as: "hall-1")
        let results = try #require(answer.json?["results"] as? [[String: Any]], "\(answer.text)")
        #expect(results.map { $0["status"] as? Int } == elements.map(\.1), "\(answer.text)")
        try scene.agent.waitFor { $0.topic.contains("/CHN:c/") }
        let published = scene.agent.messages.filter { $0.text.contains("com.example") || $0.text.contains("org.other") }
        #expect(published.allSatisfy { $0.text.contains(#""name":"own""#) })
        #expect(!scene.agent.messages.contains { $0.text.contains("unknown") })
    }

    /// The refusal of a request for a hidden object contains neither its types nor its contents.
    @Test func refusalsNameNothingThatIsHidden() throws {
        let scene = try AccessScene(Self.file)
        let (other, unknown) = (AccessScene.id(), AccessScene.id())
        let hidden = "com.example.SecretLamp"
        try scene.advertise(
            AccessScene.lamp("other", site: "hall-2", id: other, type: hidden, Self.secret),
            type: hidden
        )
        try waitUntil("the object is known") { try ids(scene.get("/v1/objects", as: "admin")).contains(other) }
        func check(_ answer: RawConnection.Response) {
            #expect(answer.status == 403 && answer.problem == "forbidden", "\(answer.text)")
            for text in ["Secret", "s3cret", "other", "hall-2"] {
                #expect(!answer.text.contains(text), "\(answer.text)")
            }
        }
        // A client cannot take over an object by advertising it with the client's site.
        let taken = #"{"object":\#(AccessScene.lamp("mine", site: "hall-1", id: other))}"#
        check(try scene.post("/v1/advertise", taken, as: "hall-1"))
        check(try scene.post("/v1/update", taken, as: "hall-1"))
        let deadvertised = try scene.post("/v1/deadvertise", #"{"objectIds":["\#(other)"]}"#, as: "hall-1")
        check(deadvertised)
        let nothing = try scene.post("/v1/deadvertise", #"{"objectIds":["\#(unknown)"]}"#, as: "hall-1")
        #expect(deadvertised.text == nothing.text)
        #expect(try scene.get("/v1/objects/\(other)", as: "admin").text.contains("s3cret"))
    }
}
