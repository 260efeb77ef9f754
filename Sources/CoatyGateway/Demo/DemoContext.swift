import Base
import Coaty
import Network

/// The IO context of the demo, which the gateway routes like a configured context.
enum DemoContext {
    static let name = "Demo greenhouse"
    /// The value types of the demo's IO sources and actors.
    static let temperature = "com.example.demo.Temperature[Celsius]"
    static let humidity = "com.example.demo.Humidity[Percent]"

    /// Constant, so that a changed context can be kept in the state directory.
    static let objectId = CoatyUUID(wire: "3c9d2f0e-6b14-4f9e-8a57-d0c4e7b1a962")

    private static let json = """
        {"context": {"coreType": "IoContext", "objectType": "com.example.demo.IoContext", "objectId": "\(objectId)",
          "name": "\(name)", "operatingState": "day"},
         "rules": [
          {"name": "Demo: temperatures go to the display of the operating state", "valueType": "\(temperature)",
           "condition": ["actor.operatingState", ["Equals", {"property": "context.operatingState"}]]},
          {"name": "Demo: humidity goes to every display of humidity", "valueType": "\(humidity)",
           "condition": ["actor.name", ["Exists"]]}]}
        """

    /// Returns the context with its rules.
    static func hosted() throws -> HostedContext {
        let json = try JSONDocument(Array(json.utf8)).root
        guard let context = json["context"], let rules = json["rules"] else {
            throw PayloadError.invalid(pointer: "", reason: "must have context and rules")
        }
        return try HostedContext(context: context, rules: IoAssociationRule.rules(rules))
    }
}

extension GatewaySettings {
    /// Adds the demo's context to the routed contexts of the gateway.
    ///
    /// - Throws: ``InvalidConfiguration`` if the configuration already has a context with this id or name.
    mutating func addDemoContext() throws(InvalidConfiguration) {
        let isTaken = routing.contexts.contains {
            $0.objectId == DemoContext.objectId || WireName($0.name) == WireName(DemoContext.name)
        }
        guard !isTaken else {
            throw conflict(["demo"], "routing has a context with the id or the name of the demo's, \(DemoContext.name)")
        }
        do {
            routing.contexts.append(try DemoContext.hosted())
        } catch {
            throw conflict(["demo"], "\(error)")
        }
    }
}
