/// A task or a task request. The core type is Task; this name keeps Swift's own `Task` accessible.
///
/// Its properties are those of ``TaskContent``.
open class CoatyTask: ContentObject<TaskContent> {
    /// `coaty.Task`
    open override class var objectType: String { CoreType.Task.objectType }

    /// Creates a task.
    public init(
        creatorId: CoatyUUID,
        creationTimestamp: CoatyTimestamp,
        status: TaskStatus,
        name: String,
        objectType: String = CoreType.Task.objectType,
        objectId: CoatyUUID = .init()
    ) {
        let content = TaskContent(creatorId: creatorId, creationTimestamp: creationTimestamp, status: status)
        super.init(content, coreType: .Task, objectType: objectType, objectId: objectId, name: name)
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }

    override class var wireExceptions: [PropertyRule] {
        super.wireExceptions + [
            .optional("startTimestamp", .number),
            // Existing agents do not check these three properties.
            .optional("lastModificationTimestamp", .any),
            .optional("dueTimestamp", .any),
            .optional("doneTimestamp", .any),
        ]
    }

    /// The requirements of the task, as plain JSON values. They are converted when they
    /// are set; encoding throws if JSON can't represent one.
    public var requirements: [String: Any]? {
        get { content.requirements?.mapValues(\.value) }
        set { content.requirements = newValue.map(AnyCodable.members) }
    }

    /// A description for people; `description` on the wire.
    public var desc: String? {
        get { content.description }
        set { content.description = newValue }
    }
}

/// The properties of a ``CoatyTask``.
public struct TaskContent: CoatyContent, Hashable {
    /// `coaty.Task`
    public static let objectType = CoreType.Task.objectType
    /// `Task`
    public static let coreType = CoreType.Task

    /// The User, device or agent that created the task.
    public var creatorId: CoatyUUID
    /// When the task was created.
    public var creationTimestamp: CoatyTimestamp
    /// The progress of the task.
    public var status: TaskStatus
    /// When the task was changed last.
    @IgnoreInvalid public var lastModificationTimestamp: CoatyTimestamp?
    /// When the task is due.
    @IgnoreInvalid public var dueTimestamp: CoatyTimestamp?
    /// When the task was done.
    @IgnoreInvalid public var doneTimestamp: CoatyTimestamp?
    /// The duration of the task, in milliseconds.
    public var duration: Double?
    /// The requirements of the task.
    public var requirements: [String: AnyCodable]?
    /// A description for people.
    public var description: String?
    /// The object that the task is assigned to.
    public var assigneeObjectId: CoatyUUID?

    /// Creates the properties; optional ones can be set afterwards.
    public init(creatorId: CoatyUUID, creationTimestamp: CoatyTimestamp, status: TaskStatus) {
        self.creatorId = creatorId
        self.creationTimestamp = creationTimestamp
        self.status = status
    }
}

/// The progress of a task.
public enum TaskStatus: Int, Codable, Sendable, CaseIterable {
    case pending, inProgress, done, blocked, cancelled, request, requestCancelled
}

extension TaskStatus: WireValue {}
