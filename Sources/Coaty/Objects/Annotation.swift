/// An annotation of another object: a text, a picture, a document.
///
/// Its properties are those of ``AnnotationContent``.
open class Annotation: ContentObject<AnnotationContent> {
    /// `coaty.Annotation`
    open override class var objectType: String { CoreType.Annotation.objectType }

    /// Creates an annotation.
    public init(
        type: AnnotationType,
        creatorId: CoatyUUID,
        creationTimestamp: CoatyTimestamp,
        status: AnnotationStatus,
        name: String,
        objectType: String = CoreType.Annotation.objectType,
        objectId: CoatyUUID = .init()
    ) {
        let content = AnnotationContent(
            type: type,
            creatorId: creatorId,
            creationTimestamp: creationTimestamp,
            status: status
        )
        super.init(content, coreType: .Annotation, objectType: objectType, objectId: objectId, name: name)
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}

/// The properties of an ``Annotation``.
public struct AnnotationContent: CoatyContent, Hashable {
    /// `coaty.Annotation`
    public static let objectType = CoreType.Annotation.objectType
    /// `Annotation`
    public static let coreType = CoreType.Annotation

    /// The type of the annotation.
    public var type: AnnotationType
    /// The creator of the annotation.
    public var creatorId: CoatyUUID
    /// When the annotation was created.
    public var creationTimestamp: CoatyTimestamp
    /// The status of the annotation.
    public var status: AnnotationStatus
    /// The variants in which the annotation can be downloaded.
    public var variants: [AnnotationVariant]?

    /// Creates the properties; optional ones can be set afterwards.
    public init(type: AnnotationType, creatorId: CoatyUUID, creationTimestamp: CoatyTimestamp, status: AnnotationStatus)
    {
        self.type = type
        self.creatorId = creatorId
        self.creationTimestamp = creationTimestamp
        self.status = status
    }
}

/// The type of an annotation.
public enum AnnotationType: Int, Codable, Sendable, CaseIterable {
    case text, image, audio, video, object3D, pdf, webDocumentUrl, liveDataUrl
}

/// The status of an annotation.
public enum AnnotationStatus: Int, Codable, Sendable, CaseIterable {
    case storedLocally, storageRequest, published, outdated
}

/// A variant in which an annotation can be downloaded.
public struct AnnotationVariant: Codable, Sendable, Hashable {
    /// The distinguishing feature, such as a media type or a resolution; not empty.
    public var variant: String
    /// The URL to download it from.
    public var downloadUrl: String

    /// Creates a variant.
    public init(variant: String, downloadUrl: String) {
        self.variant = variant
        self.downloadUrl = downloadUrl
    }
}

extension AnnotationType: WireValue {}

extension AnnotationStatus: WireValue {}

extension AnnotationVariant: WireStructure {
    static var wireExceptions: [PropertyRule] { [.required("variant", .nonEmptyString)] }
}
