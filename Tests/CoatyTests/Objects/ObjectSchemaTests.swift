import TestSupport
import Testing

@testable import Coaty

/// The rules that do not follow from the types of the properties, each with a value that the reference implementation
/// drops.
@Suite(.exclusive) struct ObjectSchemaTests {
    private static let core = #""objectId":"o","name":"n""#

    private func refusal(_ coreType: CoreType, _ members: String) throws -> String? {
        let text =
            #"{"coreType":"\#(coreType)","objectType":"t",\#(Self.core)\#(members.isEmpty ? "" : ",")\#(members)}"#
        do throws(PayloadError) {
            try ObjectSchema.check(Payload(Array(text.utf8)).json, as: nil)
            return nil
        } catch {
            return error.description
        }
    }

    private static let annotation = #""type":0,"creatorId":"c","creationTimestamp":1,"status":0"#
    private static let task = #""creatorId":"c","creationTimestamp":1,"status":0"#
    private static let log = #""logLevel":20,"logMessage":"","logDate":"d""#
    private static let snapshot =
        #""parentObjectId":"p","creatorId":"c","object":{"coreType":"Identity","objectType":"t",\#(core)}"#

    @Test(arguments: [
        (CoreType.CoatyObject, #""externalId":"""#, "must be a non-empty string at \"/externalId\""),
        (.CoatyObject, #""objectType":"""#, "must be a non-empty string at \"/objectType\""),
        (.User, "", "missing at \"/names\""),
        (.User, #""names":{}"#, "must have formatted, or familyName and givenName at \"/names\""),
        (.User, #""names":{"formatted":""}"#, "must be a non-empty string at \"/names/formatted\""),
        (
            .User, #""names":{"formatted":"f","givenName":"g"}"#,
            "must have formatted, or familyName and givenName at \"/names\""
        ),
        (.User, #""names":{"formatted":"f"},"roles":[""]"#, "must be a non-empty string at \"/roles/0\""),
        (
            .User, #""names":{"formatted":"f"},"addresses":[{"type":"t","value":"v","country":1}]"#,
            "must be a string at \"/addresses/0/country\""
        ),
        (
            .Annotation, annotation + #","variants":[{"variant":"","downloadUrl":""}]"#,
            "must be a non-empty string at \"/variants/0/variant\""
        ),
        (
            .Annotation, #""type":8,"creatorId":"c","creationTimestamp":1,"status":0"#,
            "must be one of 0, 1, 2, 3, 4, 5, 6, 7 at \"/type\""
        ),
        (.Task, task + #","startTimestamp":"1""#, "must be a number at \"/startTimestamp\""),
        (.Task, task + #","requirements":[]"#, "must be an object at \"/requirements\""),
        (.IoActor, #""valueType":"""#, "must be a non-empty string at \"/valueType\""),
        (.IoSource, #""valueType":"v","updateRate":-1"#, "must be a number from 0 at \"/updateRate\""),
        (.IoSource, #""valueType":"v","updateStrategy":4"#, "must be one of 0, 1, 2, 3 at \"/updateStrategy\""),
        (
            .IoNode,
            #""ioSources":[{"coreType":"IoActor","objectType":"t","objectId":"o","name":"n","valueType":"v"}]"#,
            "must be IoSource at \"/ioSources/0/coreType\""
        ),
        (.Log, log + #","logHost":{"agentInfo":{}}"#, "missing at \"/logHost/agentInfo/packageInfo\""),
        (.Log, log + #","logHost":{"pid":"1"}"#, "must be a number at \"/logHost/pid\""),
        (
            .Location, #""geoLocation":{"timestamp":1,"coords":{"latitude":1,"longitude":2}}"#,
            "missing at \"/geoLocation/coords/accuracy\""
        ),
        (.Snapshot, snapshot + #","creationTimestamp":0"#, "must be a number other than 0 at \"/creationTimestamp\""),
        (.Snapshot, #""creationTimestamp":1"#, "missing at \"/parentObjectId\""),
    ])
    func valuesThatExistingAgentsDropAreRefused(coreType: CoreType, members: String, reason: String) throws {
        #expect(try refusal(coreType, members) == reason)
    }

    @Test(arguments: [
        (CoreType.User, #""names":{"formatted":"f"},"entitlements":[null,1,{}]"#),
        (.Annotation, annotation), (.Log, log), (.Snapshot, snapshot + #","creationTimestamp":1"#),
        // Existing agents do not check these.
        (.Task, task + #","dueTimestamp":"later","doneTimestamp":[],"lastModificationTimestamp":null"#),
        (.IoNode, ""), (.Identity, ""), (.IoContext, ""),
    ])
    func objectsOfExistingAgentsAreAccepted(coreType: CoreType, members: String) throws {
        #expect(try refusal(coreType, members) == nil)
    }

    @Test func uncheckedPropertiesOfAnotherTypeAreIgnored() throws {
        let text =
            #"{"coreType":"Task","objectType":"t",\#(Self.core),\#(Self.task),"dueTimestamp":"later","doneTimestamp":5}"#
        let task = try #require(try PayloadCoder.object(Payload(Array(text.utf8)).json) as? CoatyTask)
        #expect(task.dueTimestamp == nil && task.doneTimestamp == 5 && task.custom.isEmpty)
        #expect(try !task.json.contains("dueTimestamp") && task.json.contains(#""doneTimestamp":5"#))
    }

    /// A task is decoded to the same properties by its class and as a value.
    @Test func coreTypesAreAlsoValues() throws {
        let task = CoatyTask(creatorId: .init(), creationTimestamp: 1, status: .done, name: "n")
        task.desc = "d"
        task.requirements = ["tools": ["hammer", 2]]
        let value = try PayloadCoder.decode(CoatyValue<TaskContent>.self, from: task.json)
        #expect(value.content == task.content && value.core == task.core && value.unknown.isEmpty)
        #expect(value.description == "d" && value.requirements == ["tools": ["hammer", 2]])
    }
}
