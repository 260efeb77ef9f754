/// An annotation of another object: a text, a picture, a document.
open class Annotation: CoatyObject {
    /// `coaty.Annotation`
    open override class var objectType: String { CoreType.Annotation.objectType }

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
        self.type = type
        self.creatorId = creatorId
        self.creationTimestamp = creationTimestamp
        self.status = status
        super.init(coreType: .Annotation, objectType: objectType, objectId: objectId, name: name)
    }

    private enum Keys: String, CodingKey, CaseIterable {
        case type, creatorId, creationTimestamp, status, variants
    }

    override class var propertyNames: [String] { super.propertyNames + Keys.allCases.map(\.rawValue) }

    /// Decodes an annotation.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        type = try container.decode(AnnotationType.self, forKey: .type)
        creatorId = try container.decode(CoatyUUID.self, forKey: .creatorId)
        creationTimestamp = try container.decode(CoatyTimestamp.self, forKey: .creationTimestamp)
        status = try container.decode(AnnotationStatus.self, forKey: .status)
        variants = try container.decodeIfPresent([AnnotationVariant].self, forKey: .variants)
        try super.init(from: decoder)
    }

    /// Encodes the annotation.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(type, forKey: .type)
        try container.encode(creatorId, forKey: .creatorId)
        try container.encode(creationTimestamp, forKey: .creationTimestamp)
        try container.encode(status, forKey: .status)
        try container.encodeIfPresent(variants, forKey: .variants)
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
