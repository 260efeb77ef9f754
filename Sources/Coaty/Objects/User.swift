/// A person, with the attributes of SCIM (RFC 7643).
open class User: CoatyObject {
    /// `coaty.User`
    open override class var objectType: String { CoreType.User.objectType }

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

    /// Creates a user.
    public init(
        name: String,
        names: ScimUserNames,
        objectType: String = CoreType.User.objectType,
        objectId: CoatyUUID = .init()
    ) {
        self.names = names
        super.init(coreType: .User, objectType: objectType, objectId: objectId, name: name)
    }

    private enum Keys: String, CodingKey, CaseIterable {
        case names, displayName, nickName, title, userType, preferredLanguage, locale, timezone, active, password
        case emails, phoneNumbers, ims, photos, addresses, groups, entitlements, roles, x509Certificates
    }

    override class var propertyNames: [String] { super.propertyNames + Keys.allCases.map(\.rawValue) }

    /// Decodes a user.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        names = try container.decode(ScimUserNames.self, forKey: .names)
        displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
        nickName = try container.decodeIfPresent(String.self, forKey: .nickName)
        title = try container.decodeIfPresent(String.self, forKey: .title)
        userType = try container.decodeIfPresent(String.self, forKey: .userType)
        preferredLanguage = try container.decodeIfPresent(String.self, forKey: .preferredLanguage)
        locale = try container.decodeIfPresent(String.self, forKey: .locale)
        timezone = try container.decodeIfPresent(String.self, forKey: .timezone)
        active = try container.decodeIfPresent(Bool.self, forKey: .active)
        password = try container.decodeIfPresent(String.self, forKey: .password)
        emails = try container.decodeIfPresent([ScimMultiValuedAttribute].self, forKey: .emails)
        phoneNumbers = try container.decodeIfPresent([ScimMultiValuedAttribute].self, forKey: .phoneNumbers)
        ims = try container.decodeIfPresent([ScimMultiValuedAttribute].self, forKey: .ims)
        photos = try container.decodeIfPresent([ScimMultiValuedAttribute].self, forKey: .photos)
        addresses = try container.decodeIfPresent([ScimAddress].self, forKey: .addresses)
        groups = try container.decodeIfPresent([ScimMultiValuedAttribute].self, forKey: .groups)
        entitlements = try container.decodeIfPresent([AnyCodable].self, forKey: .entitlements)
        roles = try container.decodeIfPresent([String].self, forKey: .roles)
        x509Certificates = try container.decodeIfPresent([String].self, forKey: .x509Certificates)
        try super.init(from: decoder)
    }

    /// Encodes the user.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(names, forKey: .names)
        try container.encodeIfPresent(displayName, forKey: .displayName)
        try container.encodeIfPresent(nickName, forKey: .nickName)
        try container.encodeIfPresent(title, forKey: .title)
        try container.encodeIfPresent(userType, forKey: .userType)
        try container.encodeIfPresent(preferredLanguage, forKey: .preferredLanguage)
        try container.encodeIfPresent(locale, forKey: .locale)
        try container.encodeIfPresent(timezone, forKey: .timezone)
        try container.encodeIfPresent(active, forKey: .active)
        try container.encodeIfPresent(password, forKey: .password)
        try container.encodeIfPresent(emails, forKey: .emails)
        try container.encodeIfPresent(phoneNumbers, forKey: .phoneNumbers)
        try container.encodeIfPresent(ims, forKey: .ims)
        try container.encodeIfPresent(photos, forKey: .photos)
        try container.encodeIfPresent(addresses, forKey: .addresses)
        try container.encodeIfPresent(groups, forKey: .groups)
        try container.encodeIfPresent(entitlements, forKey: .entitlements)
        try container.encodeIfPresent(roles, forKey: .roles)
        try container.encodeIfPresent(x509Certificates, forKey: .x509Certificates)
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
