import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct AnyCodableTests {
    @Test func parametersMatchTheDeveloperGuide() throws {
        let parameters: [String: AnyCodable] = [
            "on": .init(true), "color": .init([255, 140, 0, 1]), "luminosity": .init(0.75), "switchTime": .init(10),
        ]
        #expect(parameters["on"] == .bool(true))
        #expect(parameters["color"] == .array([.integer(255), .integer(140), .integer(0), .integer(1)]))
        #expect(parameters["luminosity"] == .double(0.75))
        #expect(parameters["switchTime"] == .integer(10))
        #expect(
            try PayloadCoder.encode(parameters)
                == #"{"color":[255,140,0,1],"luminosity":0.75,"on":true,"switchTime":10}"#
        )
    }

    @Test func literalsBecomeTheirValues() {
        let name = "lamp"
        let json: AnyCodable = ["a": [1, -2.5, true, nil, "\(name) 1"], "b": [:], "a": ["last"]]
        #expect(json == .object(["a": .array([.string("last")]), "b": .object([:])]))
        let list: AnyCodable = [1, -2.5, true, nil, "\(name) 1"]
        #expect(list == .array([.integer(1), .double(-2.5), .bool(true), .null, .string("lamp 1")]))
    }

    @Test func integersAreExactWithin64Bits() {
        #expect(AnyCodable(UInt8(7)) == .integer(7))
        #expect(AnyCodable(Int64.min) == .integer(.min))
        #expect(AnyCodable(UInt64.max) == .unsignedInteger(.max))
        #expect(AnyCodable(UInt64(3)) == .integer(3))
        #expect(AnyCodable(Int128.max) == .double(Double(Int128.max)))
    }

    @Test func variablesNeedNoLiteral() {
        let (flag, count, ratio, text) = (false, 3, 0.5, "t")
        #expect(AnyCodable(flag) == .bool(false))
        #expect(AnyCodable(count) == .integer(3))
        #expect(AnyCodable(ratio) == .double(0.5))
        #expect(AnyCodable(text) == .string("t"))
        let id = CoatyUUID()
        #expect(AnyCodable(id) == .string(id.string))
    }
}
