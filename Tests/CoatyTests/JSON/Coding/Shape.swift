import Foundation

/// The shape of a generated type: how it reads itself from a decoder, and writes itself to an encoder.
indirect enum Shape: Sendable {
    case primitive(Primitive)
    /// A type that Foundation represents in its own way.
    case date, data, url, decimal
    case optional(Shape)
    case array(Shape)
    case dictionary(Shape)
    case object([Member])
    /// An array whose elements have different shapes.
    case tuple([Shape])
    /// Reads the second shape if the first one fails.
    case either(Shape, Shape)

    struct Member: Sendable {
        let name: String
        let shape: Shape
        let access: Access
    }

    /// How a member or element is read and written.
    enum Access: CaseIterable, Sendable {
        case plain, ifPresent, nested, base
    }

    enum Primitive: CaseIterable, Sendable {
        case bool, string, double, float, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64
    }
}

/// A value of a generated type.
indirect enum Sample: Equatable, Sendable {
    case absent
    case bool(Bool)
    case string(String)
    case double(Double)
    case float(Float)
    case signed(Int64)
    case unsigned(UInt64)
    case date(Date)
    case data(Data)
    case url(URL)
    case decimal(Decimal)
    case list([Sample])
    case members([String: Sample])
}

/// A value whose type is generated: it has the shape that is current when it is decoded or encoded.
struct Generated: Codable {
    @TaskLocal static var shape: Shape = .object([])

    let sample: Sample

    init(_ sample: Sample) { self.sample = sample }

    init(from decoder: any Decoder) throws { sample = try Self.shape.read(decoder) }

    func encode(to encoder: any Encoder) throws { try Self.shape.write(sample, encoder) }

    /// Runs an operation with the shape of a part.
    static func with<Result>(_ shape: Shape, _ operation: () throws -> Result) rethrows -> Result {
        try $shape.withValue(shape, operation: operation)
    }
}

struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
}

extension Shape {
    func read(_ decoder: any Decoder) throws -> Sample {
        switch self {
        case .primitive(let type): try type.read(decoder.singleValueContainer())
        case .date: .date(try decoder.singleValueContainer().decode(Date.self))
        case .data: .data(try decoder.singleValueContainer().decode(Data.self))
        case .url: .url(try decoder.singleValueContainer().decode(URL.self))
        case .decimal: .decimal(try decoder.singleValueContainer().decode(Decimal.self))
        case .optional(let shape):
            try Generated.with(shape) { try Generated?(from: decoder) }?.sample ?? .absent
        case .array(let shape):
            .list(try Generated.with(shape) { try [Generated](from: decoder) }.map(\.sample))
        case .dictionary(let shape): .members(try Generated.with(shape) { try Self.readDictionary(decoder) })
        case .object(let members): try Self.read(members, decoder.container(keyedBy: Name.self))
        case .tuple(let shapes): .list(try Self.read(shapes, decoder.unkeyedContainer()))
        case .either(let first, let second):
            if let sample = try? first.read(decoder) { sample } else { try second.read(decoder) }
        }
    }

    /// Reads the members in the order of their names first: dictionaries read them in random order, so that any of
    /// several errors may be thrown.
    private static func readDictionary(_ decoder: any Decoder) throws -> [String: Sample] {
        let container = try decoder.container(keyedBy: Name.self)
        for key in container.allKeys.sorted(by: { $0.stringValue < $1.stringValue }) {
            _ = try container.decode(Generated.self, forKey: key)
        }
        return try [String: Generated](from: decoder).mapValues(\.sample)
    }

    private static func read(_ members: [Member], _ container: KeyedDecodingContainer<Name>) throws -> Sample {
        var samples: [String: Sample] = [:]
        for member in members {
            samples[member.name] = try read(member, container)
        }
        return .members(samples)
    }

    private static func read(_ member: Member, _ container: KeyedDecodingContainer<Name>) throws -> Sample {
        let key = Name(member.name)
        switch (member.access, member.shape) {
        case (.nested, .object(let members)):
            return try read(members, container.nestedContainer(keyedBy: Name.self, forKey: key))
        case (.nested, .tuple(let shapes)):
            return .list(try read(shapes, container.nestedUnkeyedContainer(forKey: key)))
        case (.base, let shape):
            return try Generated.with(shape) { try Generated(from: container.superDecoder(forKey: key)) }.sample
        case (.ifPresent, .primitive(let type)): return try type.readIfPresent(container, key)
        case (_, .primitive(let type)): return try type.read(container, key)
        case (.ifPresent, let shape):
            return try Generated.with(shape) {
                try container.decodeIfPresent(Generated.self, forKey: key)?.sample ?? .absent
            }
        case (_, .data): return .data(try container.decode(Data.self, forKey: key))
        case (_, .url): return .url(try container.decode(URL.self, forKey: key))
        case (_, .decimal): return .decimal(try container.decode(Decimal.self, forKey: key))
        case (_, let shape):
            return try Generated.with(shape) { try container.decode(Generated.self, forKey: key) }.sample
        }
    }

    private static func read(_ shapes: [Shape], _ container: any UnkeyedDecodingContainer) throws -> [Sample] {
        var container = container
        return try shapes.enumerated().map { index, shape in
            switch shape {
            case .primitive(let type): try type.read(&container)
            case .object(let members) where index % 2 == 0:
                try read(members, container.nestedContainer(keyedBy: Name.self))
            case .tuple(let shapes) where index % 2 == 0: .list(try read(shapes, container.nestedUnkeyedContainer()))
            case .optional(let shape) where index % 2 == 0:
                if try container.decodeNil() {
                    .absent
                } else {
                    try Generated.with(shape) { try container.decode(Generated.self) }.sample
                }
            case .url: .url(try container.decode(URL.self))
            case .data: .data(try container.decode(Data.self))
            default: try Generated.with(shape) { try container.decode(Generated.self) }.sample
            }
        }
    }

    func write(_ sample: Sample, _ encoder: any Encoder) throws {
        switch (self, sample) {
        case (.object(let members), .members(let samples)):
            try Self.write(members, samples, encoder.container(keyedBy: Name.self))
        case (.tuple(let shapes), .list(let samples)): try Self.write(shapes, samples, encoder.unkeyedContainer())
        case (.array(let shape), .list(let samples)):
            try Generated.with(shape) { try samples.map(Generated.init).encode(to: encoder) }
        case (.dictionary(let shape), .members(let samples)):
            try Generated.with(shape) { try samples.mapValues(Generated.init).encode(to: encoder) }
        case (.optional, .absent): try Generated?.none.encode(to: encoder)
        case (.optional(let shape), let sample): try shape.write(sample, encoder)
        case (.either(let shape, _), let sample): try shape.write(sample, encoder)
        case (_, .date(let date)): try encode(date, encoder)
        case (_, .data(let data)): try encode(data, encoder)
        case (_, .url(let url)): try encode(url, encoder)
        case (_, .decimal(let decimal)): try encode(decimal, encoder)
        case (.primitive(let type), let sample):
            var container = encoder.singleValueContainer()
            try type.write(sample, &container)
        default: break
        }
    }

    private func encode(_ value: some Encodable, _ encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }

    private static func write(
        _ members: [Member],
        _ samples: [String: Sample],
        _ container: KeyedEncodingContainer<Name>
    ) throws {
        var container = container
        for member in members {
            let key = Name(member.name)
            guard let sample = samples[member.name], sample != .absent || member.access != .ifPresent else { continue }
            switch (member.access, member.shape, sample) {
            case (.nested, .object(let members), .members(let samples)):
                try write(members, samples, container.nestedContainer(keyedBy: Name.self, forKey: key))
            case (.nested, .tuple(let shapes), .list(let samples)):
                try write(shapes, samples, container.nestedUnkeyedContainer(forKey: key))
            case (.base, let shape, _): try shape.write(sample, container.superEncoder(forKey: key))
            case (_, .primitive(let type), _): try type.write(sample, &container, key)
            case (_, let shape, _):
                try Generated.with(shape) { try container.encode(Generated(sample), forKey: key) }
            }
        }
    }

    private static func write(
        _ shapes: [Shape],
        _ samples: [Sample],
        _ container: any UnkeyedEncodingContainer
    ) throws {
        var container = container
        for (index, (shape, sample)) in zip(shapes, samples).enumerated() {
            switch (shape, sample) {
            case (.primitive(let type), _): try type.write(sample, &container)
            case (.object(let members), .members(let samples)) where index % 2 == 0:
                try write(members, samples, container.nestedContainer(keyedBy: Name.self))
            case (.tuple(let shapes), .list(let samples)) where index % 2 == 0:
                try write(shapes, samples, container.nestedUnkeyedContainer())
            case (.optional, .absent): try container.encodeNil()
            default: try Generated.with(shape) { try container.encode(Generated(sample)) }
            }
        }
    }
}
