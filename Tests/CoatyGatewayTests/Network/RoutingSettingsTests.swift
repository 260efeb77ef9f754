import Coaty
import Foundation
import Testing
import TestSupport

@testable import Base
@testable import CoatyGateway
@testable import Network

@Suite(.exclusive) struct RoutingSettingsTests {
    private func settings(_ text: String) throws -> GatewaySettings {
        let url = FileManager.default.temporaryDirectory.appending(path: "routing-\(UUID().uuidString).yaml")
        try text.write(to: url, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: url) }
        do {
            return try GatewaySettings(flags: [:], environment: [:], file: url.path)
        } catch {
            throw InvalidConfiguration(description: error.description.replacing(url.path, with: "file"))
        }
    }

    private static let guide = """
        name: router
        routing:
          contexts:
            - context: { coreType: IoContext, objectType: coaty.test.TemperatureIoContext, objectId: b61740a6-95d7-4d1a-8be5-53f3aa1e0b79, name: TemperatureMeasurement, operatingState: normal }
              rules:
                - name: Temperatures go to the actors responsible for the operating state
                  valueType: coaty.test.Temperature[Celsius]
                  condition: ["actorNode.characteristics.isResponsibleForOperatingState", ["Equals", { property: context.operatingState }]]
        port: 1

        """

    @Test func readsTheGuidesRules() throws {
        let settings = try settings(Self.guide)
        #expect(settings.name == "router" && settings.port == 1)
        let context = try #require(settings.routing.contexts.first)
        #expect(settings.routing.contexts.count == 1)
        #expect(context.objectId.string == "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79")
        #expect(context.name == "TemperatureMeasurement")
        #expect(context.context.root["operatingState"]?.string == "normal")
        #expect(
            try PayloadCoder.encode(context.rules)
                == #"[{"condition":["actorNode.characteristics.isResponsibleForOperatingState","#
                + #"["Equals",{"property":"context.operatingState"}]],"#
                + #""name":"Temperatures go to the actors responsible for the operating state","#
                + #""valueType":"coaty.test.Temperature[Celsius]"}]"#
        )
    }

    @Test func theFileMayBeJSON() throws {
        let settings = try settings(
            #"""
            {
              "port": 1,
              "routing": {"contexts": [{
                "context": {"coreType": "IoContext", "objectType": "coaty.IoContext", "name": "a\u00e4b",
                            "objectId": "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79", "on": [true, null, 1.5, -7, "1"]}
              }]}
            }
            """#
        )
        let context = try #require(settings.routing.contexts.first)
        #expect(context.name == "aäb" && context.rules.isEmpty)
        #expect(context.context.root["on"].map { AnyCodable($0) } == [true, nil, 1.5, -7, "1"])
    }

    @Test(
        arguments: [
            ("on", "on"), ("yes", "yes"), ("No", "No"), ("2020-01-01", "2020-01-01"), ("1:30", "1:30"), ("'1'", "1"),
            ("\"true\"", "true"), ("!!str 1", "1"), ("0b11", "0b11"), ("1_000", "1_000"), ("<<", "<<"), ("=", "="),
            ("|\n        1\n", "1\n"), ("tRUE", "tRUE"), ("'~'", "~"),
            ("true", true), ("False", false), ("~", nil), ("", nil), ("Null", nil), ("0", 0), ("007", 7), ("+7", 7),
            ("-0", 0), ("0o17", 15), ("0xff", 255), ("9223372036854775807", .integer(.max)),
            ("18446744073709551615", .unsignedInteger(.max)), ("1e3", 1000), (".5", 0.5), ("5.", 5), ("-1.5E-1", -0.15),
            ("[on, 1, {off: ~}]", ["on", 1, ["off": nil]]),
        ] as [(String, AnyCodable)]
    )
    func scalarsAreThoseOfYAML12(text: String, json: AnyCodable) throws {
        let contexts = try settings(
            """
            routing:
              contexts:
              - context:
                  coreType: IoContext
                  objectType: coaty.IoContext
                  name: a
                  objectId: b61740a6-95d7-4d1a-8be5-53f3aa1e0b79
                  p: \(text)

            """
        ).routing.contexts
        let value = try #require(contexts.first?.context.root["p"])
        #expect(AnyCodable(value) == json)
    }

    private static let context =
        "{coreType: IoContext, objectType: t, name: a, objectId: b61740a6-95d7-4d1a-8be5-53f3aa1e0b79}"

    @Test(arguments: [
        ("routing:\n", "1: routing: must be an object"),
        ("routing: 1\n", "1: routing: must be an object"),
        ("routing:\n  context: []\n", "2: routing/context: is unknown; did you mean contexts? Allowed: contexts"),
        ("routing:\n  contexts: {}\n", "2: routing/contexts: must be an array"),
        ("routing:\n  contexts:\n  - 1\n", "3: routing/contexts/0: must be an object"),
        ("routing:\n  contexts:\n  - rules: []\n", "3: routing/contexts/0/context: missing"),
        (
            "routing:\n  contexts:\n  - context: \(context)\n    rule: []\n",
            "4: routing/contexts/0/rule: is unknown; did you mean rules? Allowed: context, rules"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context)\n    rules: 1\n",
            "4: routing/contexts/0/rules: must be an array"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context)\n  - context:\n      coreType: IoContext\n      name: b\n"
                + "      objectType: t\n      objectId: b61740a6-95d7-4d1a-8be5-53f3aa1e0b79\n",
            "8: routing/contexts/1/context/objectId: is that of another context"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context)\n  - context:\n      coreType: IoContext\n      name: a\n"
                + "      objectType: t\n      objectId: b61740a6-95d7-4d1a-8be5-53f3aa1e0b78\n",
            "6: routing/contexts/1/context/name: is that of another context"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context.replacing("IoContext", with: "Task"))\n",
            "3: routing/contexts/0/context/creatorId: missing"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context.replacing("IoContext", with: "Identity"))\n",
            "3: routing/contexts/0/context/coreType: must be IoContext"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context.replacing("b61740a6", with: "B61740A6"))\n",
            "3: routing/contexts/0/context/objectId: must be a UUID in lower case"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context.replacing("name: a", with: "name: a/b"))\n",
            "3: routing/contexts/0/context/name: must not be empty nor hold #, +, / or control characters"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context.replacing("name: a", with: "name: 1"))\n",
            "3: routing/contexts/0/context/name: must be a string"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context.replacing("objectType: t", with: "objectType: ''"))\n",
            "3: routing/contexts/0/context/objectType: must be a non-empty string"
        ),
        (
            "port: 1\nrouting:\n  contexts:\n  - context: \(context)\n    rules:\n    - name: a\n      condition: {and: []}\n"
                + "    - name: b\n      condition:\n      - actor.a\n      - [Equal, 1]\n",
            "11: routing/contexts/0/rules/1/condition/1/0: must be an operator: LessThan, LessThanOrEqual, GreaterThan, "
                + "GreaterThanOrEqual, Between, NotBetween, Like, Equals, NotEquals, Exists, NotExists, Contains, "
                + "NotContains, In, NotIn, or a number from 0 to 14"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context)\n    rules:\n    - name: a\n      condition: [a, [Exists]]\n",
            "6: routing/contexts/0/rules/0/condition/0: must begin with one of source, sourceNode, actor, actorNode, context"
        ),
        (
            "routing:\n  contexts:\n  - context: \(context)\n    rules:\n    - valueType: a\n      condition: {and: []}\n",
            "5: routing/contexts/0/rules/0/name: missing"
        ),
        (
            "routing:\n  contexts:\n  - context:\n      a/b~c:\n        d: !!binary aGk=\n",
            "5: routing/contexts/0/context/a~1b~0c/d: has an unknown tag, or is no number of JSON"
        ),
        (
            "routing:\n  contexts: [.inf]\n",
            "2: routing/contexts/0: has an unknown tag, or is no number of JSON"
        ),
        (
            "routing:\n  contexts:\n  - context: {a: 1e999}\n",
            "3: routing/contexts/0/context/a: has an unknown tag, or is no number of JSON"
        ),
        ("routing:\n  [a]: 1\n", "2: routing: must have strings as keys"),
    ])
    func mistakesAreReportedWithTheirLocation(text: String, error: String) {
        #expect(throws: InvalidConfiguration(description: "file:" + error)) { try settings(text) }
    }

    @Test func contextsAreBounded() throws {
        func text(_ count: Int) -> String {
            "routing:\n  contexts:\n"
                + (0..<count).map { index in
                    let id = String(format: "b61740a6-95d7-4d1a-8be5-%012d", index)
                    return "  - context: {coreType: IoContext, objectType: t, name: c\(index), objectId: \(id)}\n"
                }.joined()
        }
        let limit = RoutingConfiguration.maximumContexts
        #expect(try settings(text(limit)).routing.contexts.count == limit)
        #expect(
            throws: InvalidConfiguration(
                description: "file:2: routing/contexts: has more than \(limit) contexts"
            )
        ) { try settings(text(limit + 1)) }
    }

    @Test func aliasesShareRulesWithinBounds() throws {
        let shared = try settings(
            """
            routing:
              contexts:
              - context: {coreType: IoContext, objectType: t, name: a, objectId: b61740a6-95d7-4d1a-8be5-53f3aa1e0b79}
                rules: &rules
                - {name: r, condition: {and: []}}
              - context: {coreType: IoContext, objectType: t, name: b, objectId: b61740a6-95d7-4d1a-8be5-53f3aa1e0b78}
                rules: *rules
            """
        )
        #expect(shared.routing.contexts.map { $0.rules.map(\.name) } == [["r"], ["r"]])
        let laughs =
            "routing:\n  a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
            + (1..<30).map { level in
                "  a\(level): &a\(level) [\(Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", "))]\n"
            }.joined()
        let error = #expect(throws: InvalidConfiguration.self) { try settings(laughs) }
        #expect(error?.description.contains("is more than \(YAMLValue.maximumSize) bytes") == true)
    }

    @Test func tooDeepNestingIsRefused() {
        let depth = JSONDocument.maximumDepth
        let text =
            "routing: " + String(repeating: "[", count: depth) + String(repeating: "]", count: depth) + "\n"
        let error = #expect(throws: InvalidConfiguration.self) { try settings(text) }
        #expect(error?.description.hasPrefix("file:1: routing") == true)
    }
}
