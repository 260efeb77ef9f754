public import Coaty

/// A task of the Hello World example, or a request for one.
public final class HelloWorldTask: CoatyTask {
    /// `com.helloworld.Task`
    public override class var objectType: String {
        register(objectType: "com.helloworld.Task", with: self)
    }

    /// The urgency of the task.
    public var urgency: HelloWorldTaskUrgency

    /// Creates a task request.
    public init(name: String, creatorId: CoatyUUID, urgency: HelloWorldTaskUrgency) {
        self.urgency = urgency
        super.init(
            creatorId: creatorId,
            creationTimestamp: .nowMillis(),
            status: .request,
            name: name,
            objectType: HelloWorldTask.objectType
        )
    }

    private enum Keys: String, CodingKey {
        case urgency
    }

    /// Decodes a task.
    public required init(from decoder: any Decoder) throws {
        urgency = try decoder.container(keyedBy: Keys.self).decode(HelloWorldTaskUrgency.self, forKey: .urgency)
        try super.init(from: decoder)
    }

    /// Encodes the task.
    public override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(urgency, forKey: .urgency)
    }
}

/// The urgency of a task, encoded as a number.
public enum HelloWorldTaskUrgency: Int, Codable, Sendable {
    case low, medium, high, critical
}
