/// A person, with the attributes of SCIM (RFC 7643).
///
/// Its properties are those of ``UserContent``.
open class User: ContentObject<UserContent> {
    /// `coaty.User`
    open override class var objectType: String { CoreType.User.objectType }

    /// Creates a user.
    public init(
        name: String,
        names: ScimUserNames,
        objectType: String = CoreType.User.objectType,
        objectId: CoatyUUID = .init()
    ) {
        let content = UserContent(names: names)
        super.init(content, coreType: .User, objectType: objectType, objectId: objectId, name: name)
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}

/// The properties of a ``User``.
public struct UserContent: CoatyContent, Hashable {
    /// `coaty.User`
    public static let objectType = CoreType.User.objectType
    /// `User`
    public static let coreType = CoreType.User

    /// The parts of the person's name.
    public var names: ScimUserNames
    /// The name to show.
    public var displayName: String?
    /// The casual name.
    public var nickName: String?
    /// The title, such as "Vice President".
    public var title: String?
    /// The relation to the organization, such as "Employee".
    public var userType: String?
    /// Preferred languages, as in an Accept-Language header.
    public var preferredLanguage: String?
    /// The locale for dates and numbers, such as `en-US`.
    public var locale: String?
    /// The time zone, such as `Europe/Berlin`.
    public var timezone: String?
    /// Whether the account is in use.
    public var active: Bool?
    /// The password.
    public var password: String?
    /// E-mail addresses.
    public var emails: [ScimMultiValuedAttribute]?
    /// Phone numbers.
    public var phoneNumbers: [ScimMultiValuedAttribute]?
    /// Instant messaging addresses.
    public var ims: [ScimMultiValuedAttribute]?
    /// Pictures, by URL.
    public var photos: [ScimMultiValuedAttribute]?
    /// Postal addresses.
    public var addresses: [ScimAddress]?
    /// Groups that the person belongs to.
    public var groups: [ScimMultiValuedAttribute]?
    /// The person's entitlements, as any JSON values.
    public var entitlements: [AnyCodable]?
    /// Roles; not empty.
    public var roles: [String]?
    /// Certificates; not empty.
    public var x509Certificates: [String]?

    /// Creates the properties; optional ones can be set afterwards.
    public init(names: ScimUserNames) {
        self.names = names
    }
}

/// The parts of a person's name (RFC 7643, section 4.1.1): the full name, or family and given name, or all three.
public struct ScimUserNames: Codable, Sendable, Hashable {
    /// The full name, not empty.
    public var formatted: String?
    /// The last name; requires the given name.
    public var familyName: String?
    /// The first name; requires the family name.
    public var givenName: String?
    /// The middle names.
    public var middleName: String?
    /// "Ms."
    public var honorificPrefix: String?
    /// "III"
    public var honorificSuffix: String?

    /// Creates a name from its parts.
    public init(
        formatted: String? = nil,
        familyName: String? = nil,
        givenName: String? = nil,
        middleName: String? = nil,
        honorificPrefix: String? = nil,
        honorificSuffix: String? = nil
    ) {
        self.formatted = formatted
        self.familyName = familyName
        self.givenName = givenName
        self.middleName = middleName
        self.honorificPrefix = honorificPrefix
        self.honorificSuffix = honorificSuffix
    }
}

/// One of several values of an attribute (RFC 7643, section 2.4).
public struct ScimMultiValuedAttribute: Codable, Sendable, Hashable {
    /// The purpose of the value, such as "work".
    public var type: String
    /// The value.
    public var value: String
    /// Whether it is the preferred one.
    public var primary: Bool?
    /// The displayed form of the value.
    public var display: String?

    /// Creates a value.
    public init(type: String, value: String, primary: Bool? = nil, display: String? = nil) {
        self.type = type
        self.value = value
        self.primary = primary
        self.display = display
    }
}

/// A postal address (RFC 7643, section 4.1.2).
public struct ScimAddress: Codable, Sendable, Hashable {
    /// The purpose of the address, such as "work".
    public var type: String
    /// The value.
    public var value: String
    /// Whether it is the preferred one.
    public var primary: Bool?
    /// The displayed form of the value.
    public var display: String?
    /// The complete address, formatted for a label.
    public var formatted: String?
    /// Street and number.
    public var streetAddress: String?
    /// City.
    public var locality: String?
    /// State or region.
    public var region: String?
    /// Postal code.
    public var postalCode: String?
    /// Country code.
    public var country: String?

    /// Creates an address; its parts can be set afterwards.
    public init(type: String, value: String) {
        self.type = type
        self.value = value
    }
}

extension ScimUserNames: WireStructure {
    static var rule: ValueRule {
        .userNames(PropertyReader.properties(of: Self.self).replaced(by: [.optional("formatted", .nonEmptyString)]))
    }
}

extension ScimMultiValuedAttribute: WireStructure {}

extension ScimAddress: WireStructure {}
