/// A task or a task request. The core type is Task; this name keeps Swift's own `Task` accessible.
open class CoatyTask: CoatyObject {
    /// `coaty.Task`
    open override class var objectType: String { CoreType.Task.objectType }

    /// The User, device or agent that created the task.
    public var creatorId: CoatyUUID
    /// When the task was created.
    public var creationTimestamp: CoatyTimestamp
    /// The progress of the task.
    public var status: TaskStatus
    /// When the task was changed last.
    public var lastModificationTimestamp: CoatyTimestamp?
    /// When the task is due.
    public var dueTimestamp: CoatyTimestamp?
    /// When the task was done.
    public var doneTimestamp: CoatyTimestamp?
    /// The duration of the task, in milliseconds.
    public var duration: Double?
    /// The requirements of the task, as plain JSON values.
    public var requirements: [String: Any]?
    /// A description for people; `description` on the wire.
    public var desc: String?
    /// The object that the task is assigned to.
    public var assigneeObjectId: CoatyUUID?

    /// Creates a task.
    public init(
        creatorId: CoatyUUID,
        creationTimestamp: CoatyTimestamp,
        status: TaskStatus,
        name: String,
        objectType: String = CoreType.Task.objectType,
        objectId: CoatyUUID = .init()
    ) {
        self.creatorId = creatorId
        self.creationTimestamp = creationTimestamp
        self.status = status
        super.init(coreType: .Task, objectType: objectType, objectId: objectId, name: name)
    }

    private enum Keys: String, CodingKey, CaseIterable {
        case creatorId, creationTimestamp, status, lastModificationTimestamp, dueTimestamp, doneTimestamp
        case duration, requirements, assigneeObjectId
        case desc = "description"
    }

    override class var propertyNames: [String] { super.propertyNames + Keys.allCases.map(\.rawValue) }

    /// Decodes a task.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        creatorId = try container.decode(CoatyUUID.self, forKey: .creatorId)
        creationTimestamp = try container.decode(CoatyTimestamp.self, forKey: .creationTimestamp)
        status = try container.decode(TaskStatus.self, forKey: .status)
        // Existing agents do not check these three properties, so a value of another type must not invalidate the whole
        // task.
        lastModificationTimestamp = try? container.decode(CoatyTimestamp.self, forKey: .lastModificationTimestamp)
        dueTimestamp = try? container.decode(CoatyTimestamp.self, forKey: .dueTimestamp)
        doneTimestamp = try? container.decode(CoatyTimestamp.self, forKey: .doneTimestamp)
        duration = try container.decodeIfPresent(Double.self, forKey: .duration)
        requirements = try container.decodeDictionaryIfPresent(forKey: .requirements)
        desc = try container.decodeIfPresent(String.self, forKey: .desc)
        assigneeObjectId = try container.decodeIfPresent(CoatyUUID.self, forKey: .assigneeObjectId)
        try super.init(from: decoder)
    }

    /// Encodes the task.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(creatorId, forKey: .creatorId)
        try container.encode(creationTimestamp, forKey: .creationTimestamp)
        try container.encode(status, forKey: .status)
        try container.encodeIfPresent(lastModificationTimestamp, forKey: .lastModificationTimestamp)
        try container.encodeIfPresent(dueTimestamp, forKey: .dueTimestamp)
        try container.encodeIfPresent(doneTimestamp, forKey: .doneTimestamp)
        try container.encodeIfPresent(duration, forKey: .duration)
        try container.encodeDictionaryIfPresent(requirements, forKey: .requirements)
        try container.encodeIfPresent(desc, forKey: .desc)
        try container.encodeIfPresent(assigneeObjectId, forKey: .assigneeObjectId)
    }
}

/// The progress of a task.
public enum TaskStatus: Int, Codable, Sendable, CaseIterable {
    case pending, inProgress, done, blocked, cancelled, request, requestCancelled
}
