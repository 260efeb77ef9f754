import Coaty
import TestSupport
import Testing

@testable import CoatyGateway

/// What a client that is behind gets, while events keep coming and the memory forgets.
@Suite(.closesOutlets) struct BacklogTests {
    private struct Said {
        /// The number that each event was made with is its position.
        var last = 0
        var gaps: [Int] = []
    }

    /// Whether events are wanted: those that the filter of the test lets pass.
    private static func isWanted(_ number: Int, _ isFiltered: Bool) -> Bool { !isFiltered || number % 3 == 0 }

    /// Checks what was told, and says up to where.
    private static func check(_ told: [Told], _ said: Said, from begin: Int, _ isFiltered: Bool) throws -> Int {
        var position = begin
        var gapsTold = 0
        for frame in told {
            switch frame.content {
            case .event(let number):
                let missed = (position + 1..<max(number, position + 1)).filter {
                    isWanted($0, isFiltered) || said.gaps.contains($0)
                }
                #expect(number > position, "\(number) was told behind \(position)")
                #expect(missed == [], "before \(number)")
                #expect(frame.cursor?.position == UInt64(number))
                position = number
            case .gap(let lost):
                let end = Int(try #require(frame.cursor?.position))
                let passed = position + 1..<end + 1
                #expect(!passed.isEmpty)
                let hasGap = said.gaps.contains { passed.contains($0) }
                if isFiltered || hasGap {
                    #expect(lost == nil)
                } else {
                    #expect(lost == passed.count)
                }
                gapsTold += 1
                position = end
            default: Issue.record("\(frame)")
            }
        }
        return position
    }

    @Test(arguments: [false, true], 0..<25 as Range<UInt64>)
    func eachEventIsToldOnceOrCounted(_ isFiltered: Bool, seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let memory = ResumeMemory(limit: try Made.recordSize() * Int.random(in: 10...60, using: &random))
        let source = StreamSource(isResumable: true, memory: memory)
        let other = StreamSource(isResumable: true, memory: memory)
        for source in [source, other] { source.update(.standing) }
        var said = Said()
        func say() throws {
            said.last += 1
            let isWanted = Self.isWanted(said.last, isFiltered)
            let members = #""objectType":"t","objectId":"o","name":"o","n":\#(said.last),"w":\#(isWanted)"#
            source.say(try Made.channel(#"{"object":{"coreType":"CoatyObject",\#(members)}}"#))
        }
        func lose() {
            said.last += 1
            said.gaps.append(said.last)
            source.update(.offline)
            source.update(.standing)
        }
        let probe = SteeredTransport()
        source.add(Outlet(probe).open(id: nil))
        let since = try #require(try probe.told.first?.cursor)
        for _ in 0..<Int.random(in: 1...80, using: &random) { try say() }

        let transport = SteeredTransport(room: 0)
        let outlet = Outlet(transport)
        let filter = isFiltered ? try Made.condition(#"["w",["Equals",true]]"#) : nil
        let options = Made.options { ($0.since, $0.filter, $0.buffer) = (since, filter, 4096) }
        source.add(outlet.open(id: "a", options: options))
        for _ in 0..<400 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<8: try say()
            case 8: lose()
            case 9..<13: other.say(try Made.event(1, 10))
            case 13..<17:
                transport.setRoom(Int.random(in: 0..<8, using: &random))
                outlet.pump()
            default: await Task.yield()
            }
        }
        try say()
        while !Self.isWanted(said.last, isFiltered) { try say() }
        transport.setRoom(.max)
        outlet.pump()
        try await untilTrue("the last is told") {
            try transport.told.last.map { Int($0.cursor?.position ?? 0) >= said.last } ?? false
        }
        let told = try transport.told
        #expect(told.first?.content == .ok)
        let end = try Self.check(Array(told.dropFirst()), said, from: 0, isFiltered)
        #expect(end == said.last)
        // And from there on as they come.
        try say()
        while !Self.isWanted(said.last, isFiltered) { try say() }
        #expect(try transport.told.last?.event == said.last)
    }

    /// A client that is behind is no reason to keep anything; what is said by many at once is still told in its order.
    @Test func whoIsBehindWhileManySayGetsAllInOrder() async throws {
        let source = StreamSource(isResumable: true, memory: ResumeMemory(limit: 64 << 20))
        source.update(.standing)
        let transport = SteeredTransport(room: 1)
        let outlet = Outlet(transport)
        var options = StreamOptions()
        // When it has caught up it may be behind again.
        options.buffer = StreamOptions.maximumBuffer
        source.add(outlet.open(id: "a", options: options)) {
            ObjectSnapshot((0..<500).map { Made.alive($0, 0) }, cursor: $0)
        }
        let events = try (1...1000).map { try Made.event(1, $0) }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for event in events { source.say(event) } }
            group.addTask {
                for _ in 0..<500 {
                    transport.setRoom(2)
                    outlet.pump()
                }
            }
        }
        transport.setRoom(.max)
        outlet.pump()
        try await untilTrue("all came") { transport.frames.count >= 1501 }
        let told = try transport.told
        #expect(told.dropFirst().prefix(500).allSatisfy { $0.content == .change("added") })
        #expect(told.compactMap(\.event) == Array(1...1000))
        #expect(told.count == 1501)
    }

    /// A source that has gone takes what was not read with it in its turn: nobody knows what that was.
    @Test func whatAClosedSourceHasSaidMayBeMissing() async throws {
        let memory = ResumeMemory(limit: try Made.recordSize() * 10)
        let source = StreamSource(isResumable: true, memory: memory)
        let other = StreamSource(isResumable: true, memory: memory)
        let transport = SteeredTransport(room: 0)
        let outlet = Outlet(transport)
        source.add(outlet.open(id: "a"))
        for number in 11...14 { source.say(try Made.event(1, number)) }
        source.update(.standing)
        transport.setRoom(2)
        outlet.pump()
        try await untilTrue("the first came") { transport.frames.count == 2 }
        source.end()
        for _ in 0..<20 { other.say(try Made.event(1, 10)) }
        transport.setRoom(.max)
        outlet.pump()
        try await untilTrue("the end came") { try transport.told.last?.content == .done("withdrawn") }
        // What the transport had turned down was taken out of the backlog already.
        let told = try transport.told.map(\.content)
        #expect(told == [.ok, .event(11), .event(12), .gap(nil), .done("withdrawn")])
    }

    /// Who is told what was said before does not keep others on the connection from what is said now.
    @Test func whoIsBehindHoldsNobodyUp() async throws {
        let source = StreamSource(isResumable: true, memory: ResumeMemory(limit: 64 << 20))
        source.update(.standing)
        let transport = SteeredTransport()
        let outlet = Outlet(transport)
        let probe = SteeredTransport()
        source.add(Outlet(probe).open(id: nil))
        let since = try #require(try probe.told.first?.cursor)
        for number in 1...2000 { source.say(try Made.event(1, number)) }
        source.add(outlet.open(id: "live"))
        let nothing = Made.options { $0.since = since }
        transport.setRoom(0)
        source.add(outlet.open(id: "behind", options: nothing))
        for number in 2001...2100 { source.say(try Made.event(1, number)) }
        transport.setRoom(101)
        outlet.pump()
        try await untilTrue("there is no more room") { transport.frames.count >= 102 }
        #expect(try transport.told.filter { $0.id == "live" }.compactMap(\.event) == Array(2001...2100))
        transport.setRoom(.max)
        outlet.pump()
        try await untilTrue("all came") { transport.frames.count >= 2 + 100 + 2100 }
        #expect(try transport.told.filter { $0.id == "behind" }.compactMap(\.event) == Array(1...2100))
    }
}
