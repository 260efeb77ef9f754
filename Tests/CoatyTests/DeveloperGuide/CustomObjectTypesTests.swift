import Coaty
import TestSupport
import Testing

/// The examples of the chapter "Custom object types".
@Suite(.exclusive) struct CustomObjectTypesTests {
    @Test @ControllerActor func exchangesObjectsOfARegisteredClass() async throws {
        let network = try GuideNetwork()
        let agent = try network.agent(objectTypes: [ExampleObject.self])
        let events = try agent.communicationManager.observeAdvertise(withObjectType: ExampleObject.objectType)
        try await network.join(agent)
        try agent.communicationManager.publishAdvertise(.with(object: ExampleObject(myValue: "Hello")))

        let object = try #require(try await first(of: events).data.object as? ExampleObject)
        #expect(object.myValue == "Hello")
        #expect(object.name == "ExampleObject Name :)")
        #expect(object.custom.isEmpty)
        await network.end(agent)
    }

    @Test @ControllerActor func refusesAnObjectItsClassCannotDecode() async throws {
        let network = try GuideNetwork()
        let agent = try network.agent(objectTypes: [ExampleObject.self])
        let events = try agent.communicationManager.observeAdvertise(withObjectType: ExampleObject.objectType)
        try await network.join(agent)
        let object = CoatyObject(
            coreType: .CoatyObject,
            objectType: ExampleObject.objectType,
            objectId: .init(),
            name: "Without myValue"
        )
        try agent.communicationManager.publishAdvertise(.with(object: object))
        let event = try await first(of: events)
        #expect(throws: DecodingError.self) { try event.data.object }
        await network.end(agent)
    }

    @Test func decodesAnUnregisteredTypeAsItsCoreType() throws {
        let text = """
            {"coreType":"Task","objectType":"com.example.Unregistered","objectId":"5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d11",\
            "name":"T","creatorId":"0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a21","creationTimestamp":1,"status":0,\
            "effort":9223372036854775807,"tools":["hose"]}
            """
        let object = try PayloadCoder.decode(AnyCoatyObjectDecodable.self, from: text).object
        let task = try #require(object as? CoatyTask)
        #expect(task.status == .pending)
        #expect(task.custom == ["effort": .init(Int64.max), "tools": ["hose"]])
        #expect(try task.json.contains(#""effort":9223372036854775807"#), "unknown members are sent unchanged")
    }

    @Test func decodesPropertiesOfAnyTypeByAnyCodableAndAnyCoatyObjectDecodable() throws {
        let inner = ExampleObject(myValue: "inside")
        let parcel = Parcel(content: inner, label: ["weight": 3, "fragile": true])
        let decoded = try #require(
            try PayloadCoder.decode(AnyCoatyObjectDecodable.self, from: parcel.json).object as? Parcel
        )
        #expect((decoded.content as? ExampleObject)?.myValue == "inside")
        #expect(decoded.label.value as? [String: Any] != nil)
        #expect(decoded.label == ["weight": 3, "fragile": true])
    }
}

extension CustomObjectTypesTests {
    final class ExampleObject: CoatyObject {

        // MARK: - Class registration.

        override class var objectType: String {
            return register(objectType: "com.example.ExampleObject", with: self)
        }

        // MARK: - Properties.

        let myValue: String

        // MARK: Initializers.

        init(myValue: String) {
            self.myValue = myValue
            super.init(
                coreType: .CoatyObject,
                objectType: ExampleObject.objectType,
                objectId: .init(),
                name: "ExampleObject Name :)"
            )
        }

        // MARK: Codable methods.

        enum CodingKeys: String, CodingKey {
            case myValue
        }

        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            myValue = try container.decode(String.self, forKey: .myValue)
            try super.init(from: decoder)
        }

        override func encode(to encoder: any Encoder) throws {
            try super.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(myValue, forKey: .myValue)
        }
    }
}

/// An object that holds an object of any type and any JSON value ("Decodable methods").
private final class Parcel: CoatyObject {
    override class var objectType: String { register(objectType: "hello.coaty.Parcel", with: self) }

    let content: CoatyObject
    let label: AnyCodable

    init(content: CoatyObject, label: AnyCodable) {
        self.content = content
        self.label = label
        super.init(coreType: .CoatyObject, objectType: Parcel.objectType, objectId: .init(), name: "Parcel")
    }

    enum CodingKeys: String, CodingKey {
        case content, label
    }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        content = try container.decode(AnyCoatyObjectDecodable.self, forKey: .content).object
        label = try container.decode(AnyCodable.self, forKey: .label)
        try super.init(from: decoder)
    }

    override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(content, forKey: .content)
        try container.encode(label, forKey: .label)
    }
}
