import Coaty
import CoatySensorThings
import TestSupport
import Testing

/// Objects as coaty-js sends them, written by hand from its interface definitions.
@Suite(.exclusive) struct ObjectsTests {
    private let thingId: CoatyUUID
    private let sensorId: CoatyUUID
    private let featureId: CoatyUUID

    init() throws {
        thingId = try #require(CoatyUUID(uuidString: "4c480c29-f65f-496f-8005-03e7503eec2b"))
        sensorId = try #require(CoatyUUID(uuidString: "83dfc46a-0709-4f70-9ea5-beebf8fa89af"))
        featureId = try #require(CoatyUUID(uuidString: "b15521af-9077-4b22-978a-5ff8381d53ae"))
        #expect(
            Set(SensorThingsTypes.objectTypes.map { $0.objectType }) == [
                "coaty.sensorThings.FeatureOfInterest", "coaty.sensorThings.Observation",
                "coaty.sensorThings.Sensor", "coaty.sensorThings.Thing",
            ]
        )
    }

    /// Publishes the object, compares the payload with the expected text, and decodes the object from this text.
    private func exchange<Object: CoatyObject>(_ object: Object, _ text: String) throws -> Object {
        let expected = try PayloadCoder.decode(AnyCodable.self, from: text)
        let sent = try AdvertiseEvent.with(object: object)
        #expect(AnyCodable(sent.payload.json)["object"] == expected)
        let received = try decode(text)
        #expect(try PayloadCoder.decode(AnyCodable.self, from: received.json) == expected)
        return try #require(received as? Object)
    }

    private func decode(_ text: String) throws -> CoatyObject {
        try PayloadCoder.decode(AnyCoatyObjectDecodable.self, from: text).object
    }

    /// The class of received things is not that of the subclass.
    @Test func aSubclassWithoutItsOwnTypeIsNotRegistered() throws {
        final class Board: Thing {}
        #expect(Board.objectType == Thing.objectType)
        let text = try AdvertiseEvent.with(object: Board(description: "d", name: "n", objectId: thingId)).payload.json
        // Only the use of a class registers it.
        _ = Board.objectType
        let received = try decode(PayloadCoder.encode(AnyCodable(text)["object"]))
        #expect(type(of: received) == Thing.self)
    }

    /// `IgnoreInvalid` in a type of an application.
    @Test func invalidPropertiesOfApplicationsAreIgnored() throws {
        struct Lamp: CoatyContent {
            static let objectType = "com.example.Lamp"
            @IgnoreInvalid var watts: Double?
        }
        for member in ["", #","watts":"many""#, #","watts":null"#] {
            let text =
                #"{"coreType":"CoatyObject","objectType":"com.example.Lamp","objectId":"o","name":"n"\#(member)}"#
            let lamp = try PayloadCoder.decode(CoatyValue<Lamp>.self, from: text)
            #expect(lamp.watts == nil && lamp.unknown.isEmpty)
            #expect(try !PayloadCoder.encode(lamp).contains("watts"))
        }
    }

    @Test func thing() throws {
        let locationId = try #require(CoatyUUID(uuidString: "14119642-ee6a-4596-bf34-d8a3436290d3"))
        let received = try exchange(
            Thing(
                description: "A board",
                properties: ["model": .string("410F"), "power": .object(["watts": .integer(7)])],
                name: "Thing1",
                objectId: thingId,
                externalId: "board-1",
                parentObjectId: sensorId,
                locationId: locationId
            ),
            #"""
            {"coreType":"CoatyObject","objectType":"coaty.sensorThings.Thing","objectId":"4c480c29-f65f-496f-8005-03e7503eec2b",
             "name":"Thing1","description":"A board","properties":{"model":"410F","power":{"watts":7}},"externalId":"board-1",
             "parentObjectId":"83dfc46a-0709-4f70-9ea5-beebf8fa89af","locationId":"14119642-ee6a-4596-bf34-d8a3436290d3"}
            """#
        )
        #expect(received.description == "A board")
        #expect(received.properties?["model"] == .string("410F"))
        #expect(received.locationId == locationId)
    }

    @Test func thingWithoutOptionalProperties() throws {
        let received = try exchange(
            Thing(description: "", name: "Thing1", objectId: thingId),
            #"""
            {"coreType":"CoatyObject","objectType":"coaty.sensorThings.Thing","objectId":"4c480c29-f65f-496f-8005-03e7503eec2b",
             "name":"Thing1","description":""}
            """#
        )
        #expect(received.properties == nil)
    }

    @Test func sensor() throws {
        let ring: [Position] = [[100, 0], [101, 0], [101, 1.5], [100, 1], [100, 0]]
        let received = try exchange(
            Sensor(
                description: "A thermometer measures the temperature",
                encodingType: SensorEncodingTypes.SENSOR_ML,
                metadata: .object(["range": .array([.integer(-40), .double(85.5)])]),
                unitOfMeasurement: UnitOfMeasurement(
                    name: "Celsius",
                    symbol: "degC",
                    definition: "http://www.qudt.org/qudt/owl/1.0.0/unit/Instances.html#DegreeCelsius"
                ),
                observationType: ObservationTypes.MEASUREMENT,
                observedArea: Polygon(coordinates: [ring], bbox: [100, 0, 101, 1.5]),
                phenomenonTime: CoatyTimeInterval(start: 1_700_000_000_000, end: 1_700_000_001_000),
                resultTime: CoatyTimeInterval(start: 1_700_000_000_000, duration: 1000),
                observedProperty: ObservedProperty(
                    name: "Temperature",
                    definition: "http://dbpedia.org/page/Dew_point",
                    description: "DewPoint Temperature"
                ),
                name: "Thermometer",
                objectId: sensorId,
                parentObjectId: thingId
            ),
            #"""
            {"coreType":"CoatyObject","objectType":"coaty.sensorThings.Sensor","objectId":"83dfc46a-0709-4f70-9ea5-beebf8fa89af",
             "name":"Thermometer","parentObjectId":"4c480c29-f65f-496f-8005-03e7503eec2b",
             "description":"A thermometer measures the temperature",
             "encodingType":"http://www.opengis.net/doc/IS/SensorML/2.0","metadata":{"range":[-40,85.5]},
             "unitOfMeasurement":{"name":"Celsius","symbol":"degC",
               "definition":"http://www.qudt.org/qudt/owl/1.0.0/unit/Instances.html#DegreeCelsius"},
             "observationType":"http://www.opengis.net/def/observationType/OGC-OM/2.0/OM_Measurement",
             "observedArea":{"type":"Polygon","bbox":[100,0,101,1.5],
               "coordinates":[[[100,0],[101,0],[101,1.5],[100,1],[100,0]]]},
             "phenomenonTime":{"start":1700000000000,"end":1700000001000},
             "resultTime":{"start":1700000000000,"duration":1000},
             "observedProperty":{"name":"Temperature","definition":"http://dbpedia.org/page/Dew_point",
               "description":"DewPoint Temperature"}}
            """#
        )
        #expect(received.observationType == .measurement)
        #expect(received.observedArea == Polygon(coordinates: [ring], bbox: [100, 0, 101, 1.5]))
        #expect(received.phenomenonTime == CoatyTimeInterval(start: 1_700_000_000_000, end: 1_700_000_001_000))
        #expect(received.resultTime == CoatyTimeInterval(start: 1_700_000_000_000, duration: 1000))
        #expect(received.parentObjectId == thingId)
    }

    @Test func sensorOfTruthWithoutUnit() throws {
        let received = try exchange(
            Sensor(
                description: "Is the door open?",
                encodingType: SensorEncodingTypes.UNDEFINED,
                metadata: .null,
                unitOfMeasurement: UnitOfMeasurement(),
                observationType: ObservationTypes.TRUTH,
                observedProperty: ObservedProperty(name: "Open", definition: "", description: ""),
                name: "Door",
                objectId: sensorId
            ),
            #"""
            {"coreType":"CoatyObject","objectType":"coaty.sensorThings.Sensor","objectId":"83dfc46a-0709-4f70-9ea5-beebf8fa89af",
             "name":"Door","description":"Is the door open?","encodingType":"","metadata":null,"unitOfMeasurement":{},
             "observationType":"http://www.opengis.net/def/observationType/OGC-OM/2.0/OM_TruthObservation",
             "observedProperty":{"name":"Open","definition":"","description":""}}
            """#
        )
        #expect(received.metadata == .null)
        #expect(received.unitOfMeasurement == UnitOfMeasurement())
    }

    @Test func observation() throws {
        let received = try exchange(
            Observation(
                phenomenonTime: 1_700_000_000_123,
                result: .string("12.50"),
                resultTime: 1_700_000_000_124,
                resultQuality: ["good", "calibrated"],
                validTime: CoatyTimeInterval(duration: 1500),
                parameters: ["battery": .double(0.55), "uptime": .string("86400")],
                featureOfInterest: featureId,
                name: "Observation1",
                objectId: thingId,
                parentObjectId: sensorId
            ),
            #"""
            {"coreType":"CoatyObject","objectType":"coaty.sensorThings.Observation",
             "objectId":"4c480c29-f65f-496f-8005-03e7503eec2b","name":"Observation1",
             "parentObjectId":"83dfc46a-0709-4f70-9ea5-beebf8fa89af","phenomenonTime":1700000000123,"result":"12.50",
             "resultTime":1700000000124,"resultQuality":["good","calibrated"],"validTime":{"duration":1500},
             "parameters":{"battery":0.55,"uptime":"86400"},"featureOfInterestId":"b15521af-9077-4b22-978a-5ff8381d53ae"}
            """#
        )
        #expect(received.featureOfInterest == featureId)
        #expect(received.validTime?.duration == 1500)
        #expect(received.parameters?["battery"] == .double(0.55))
    }

    @Test func featureOfInterest() throws {
        let received = try exchange(
            FeatureOfInterest(
                description: "feature of interest",
                encodingType: EncodingTypes.GEO_JSON,
                metadata: .string("interesting"),
                name: "FOI1",
                objectId: featureId
            ),
            #"""
            {"coreType":"CoatyObject","objectType":"coaty.sensorThings.FeatureOfInterest",
             "objectId":"b15521af-9077-4b22-978a-5ff8381d53ae","name":"FOI1","description":"feature of interest",
             "encodingType":"application/vnd.geo+json","metadata":"interesting"}
            """#
        )
        #expect(received.metadata == .string("interesting"))
    }

    @Test(arguments: [
        "null", "true", "0", "-9223372036854775808", "18446744073709551615", "-1.5", "1e-7", #""Grad""#, "[]", "{}",
        #"[null,{"a":[1,[2.5]]},"b"]"#,
    ])
    func resultIsAnyJSON(_ result: String) throws {
        let text = #"""
            {"coreType":"CoatyObject","objectType":"coaty.sensorThings.Observation","objectId":"o","name":"n",
             "phenomenonTime":1,"resultTime":1,"result":\#(result)}
            """#
        let received = try #require(try decode(text) as? Observation)
        #expect(received.result == (try PayloadCoder.decode(AnyCodable.self, from: result)))
        #expect(
            try PayloadCoder.decode(AnyCodable.self, from: received.json)
                == PayloadCoder.decode(AnyCodable.self, from: text)
        )
    }

    @Test(
        arguments: [
            (SensorThingsTypes.OBJECT_TYPE_THING, ["description": .string("")]),
            (
                SensorThingsTypes.OBJECT_TYPE_SENSOR,
                [
                    "description": .string(""), "encodingType": .string(""), "metadata": .object([:]),
                    "unitOfMeasurement": .object([:]), "observationType": .string("com.example.own"),
                    "observedProperty": .object([
                        "name": .string("n"), "definition": .string(""), "description": .string(""),
                    ]),
                ]
            ),
            (
                SensorThingsTypes.OBJECT_TYPE_OBSERVATION,
                ["phenomenonTime": .integer(0), "result": .null, "resultTime": .integer(0)]
            ),
            (
                SensorThingsTypes.OBJECT_TYPE_FEATURE_OF_INTEREST,
                ["description": .string(""), "encodingType": .string(""), "metadata": .null]
            ),
        ] as [(String, [String: AnyCodable])]
    )
    func refusesAMissingProperty(_ objectType: String, _ required: [String: AnyCodable]) throws {
        let base: [String: AnyCodable] = [
            "coreType": .string("CoatyObject"), "objectType": .string(objectType), "objectId": .string("o"),
            "name": .string("n"),
        ]
        let whole = base.merging(required) { $1 }
        #expect(try decode(PayloadCoder.encode(whole)).objectType == objectType)
        for name in required.keys {
            var less = whole
            less[name] = nil
            let text = try PayloadCoder.encode(less)
            #expect("without \(name)") {
                try decode(text)
            } throws: { error in
                guard case DecodingError.keyNotFound(let key, _) = error else { return false }
                return key.stringValue == name
            }
        }
    }

    @Test(arguments: [
        #""observedArea":{"type":"Point","coordinates":[1,2]}"#,
        #""observedArea":{"coordinates":[[[1,2]]]}"#,
        #""observedArea":{"type":"Polygon"}"#,
        #""phenomenonTime":{"start":1}"#,
        #""resultTime":{"start":1,"end":2,"duration":1}"#,
        #""observedProperty":{"name":"n","definition":""}"#,
        #""unitOfMeasurement":{"name":1}"#,
        #""unitOfMeasurement":null"#,
    ])
    func refusesAPropertyOfAnotherShape(_ property: String) throws {
        func text(_ property: String) -> String {
            #"""
            {"coreType":"CoatyObject","objectType":"coaty.sensorThings.Sensor","objectId":"o","name":"n","description":"",
             "encodingType":"","metadata":{},"observationType":"t",\#(property)}
            """#
        }
        let unit = #""unitOfMeasurement":{}"#
        let observed = #""observedProperty":{"name":"n","definition":"","description":""}"#
        let others = [unit, observed].filter { !property.hasPrefix($0.prefix(while: { $0 != ":" })) }
        #expect(try decode(text([unit, observed].joined(separator: ","))) is Sensor)
        #expect(throws: DecodingError.self) { try decode(text((others + [property]).joined(separator: ","))) }
    }
}

extension AnyCodable {
    fileprivate subscript(name: String) -> AnyCodable? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }
}
