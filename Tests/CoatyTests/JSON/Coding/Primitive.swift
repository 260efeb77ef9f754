/// The methods that containers have for each primitive type.
extension Shape.Primitive {
    func read(_ container: any SingleValueDecodingContainer) throws -> Sample {
        switch self {
        case .bool: .bool(try container.decode(Bool.self))
        case .string: .string(try container.decode(String.self))
        case .double: .double(try container.decode(Double.self))
        case .float: .float(try container.decode(Float.self))
        case .int: .signed(Int64(try container.decode(Int.self)))
        case .int8: .signed(Int64(try container.decode(Int8.self)))
        case .int16: .signed(Int64(try container.decode(Int16.self)))
        case .int32: .signed(Int64(try container.decode(Int32.self)))
        case .int64: .signed(Int64(try container.decode(Int64.self)))
        case .uint: .unsigned(UInt64(try container.decode(UInt.self)))
        case .uint8: .unsigned(UInt64(try container.decode(UInt8.self)))
        case .uint16: .unsigned(UInt64(try container.decode(UInt16.self)))
        case .uint32: .unsigned(UInt64(try container.decode(UInt32.self)))
        case .uint64: .unsigned(UInt64(try container.decode(UInt64.self)))
        }
    }

    func read(_ container: inout any UnkeyedDecodingContainer) throws -> Sample {
        switch self {
        case .bool: .bool(try container.decode(Bool.self))
        case .string: .string(try container.decode(String.self))
        case .double: .double(try container.decode(Double.self))
        case .float: .float(try container.decode(Float.self))
        case .int: .signed(Int64(try container.decode(Int.self)))
        case .int8: .signed(Int64(try container.decode(Int8.self)))
        case .int16: .signed(Int64(try container.decode(Int16.self)))
        case .int32: .signed(Int64(try container.decode(Int32.self)))
        case .int64: .signed(Int64(try container.decode(Int64.self)))
        case .uint: .unsigned(UInt64(try container.decode(UInt.self)))
        case .uint8: .unsigned(UInt64(try container.decode(UInt8.self)))
        case .uint16: .unsigned(UInt64(try container.decode(UInt16.self)))
        case .uint32: .unsigned(UInt64(try container.decode(UInt32.self)))
        case .uint64: .unsigned(UInt64(try container.decode(UInt64.self)))
        }
    }

    func read(_ container: KeyedDecodingContainer<Name>, _ key: Name) throws -> Sample {
        switch self {
        case .bool: .bool(try container.decode(Bool.self, forKey: key))
        case .string: .string(try container.decode(String.self, forKey: key))
        case .double: .double(try container.decode(Double.self, forKey: key))
        case .float: .float(try container.decode(Float.self, forKey: key))
        case .int: .signed(Int64(try container.decode(Int.self, forKey: key)))
        case .int8: .signed(Int64(try container.decode(Int8.self, forKey: key)))
        case .int16: .signed(Int64(try container.decode(Int16.self, forKey: key)))
        case .int32: .signed(Int64(try container.decode(Int32.self, forKey: key)))
        case .int64: .signed(Int64(try container.decode(Int64.self, forKey: key)))
        case .uint: .unsigned(UInt64(try container.decode(UInt.self, forKey: key)))
        case .uint8: .unsigned(UInt64(try container.decode(UInt8.self, forKey: key)))
        case .uint16: .unsigned(UInt64(try container.decode(UInt16.self, forKey: key)))
        case .uint32: .unsigned(UInt64(try container.decode(UInt32.self, forKey: key)))
        case .uint64: .unsigned(UInt64(try container.decode(UInt64.self, forKey: key)))
        }
    }

    func readIfPresent(_ container: KeyedDecodingContainer<Name>, _ key: Name) throws -> Sample {
        switch self {
        case .bool: try container.decodeIfPresent(Bool.self, forKey: key).map { .bool($0) } ?? .absent
        case .string: try container.decodeIfPresent(String.self, forKey: key).map { .string($0) } ?? .absent
        case .double: try container.decodeIfPresent(Double.self, forKey: key).map { .double($0) } ?? .absent
        case .float: try container.decodeIfPresent(Float.self, forKey: key).map { .float($0) } ?? .absent
        case .int: try container.decodeIfPresent(Int.self, forKey: key).map { .signed(Int64($0)) } ?? .absent
        case .int8: try container.decodeIfPresent(Int8.self, forKey: key).map { .signed(Int64($0)) } ?? .absent
        case .int16: try container.decodeIfPresent(Int16.self, forKey: key).map { .signed(Int64($0)) } ?? .absent
        case .int32: try container.decodeIfPresent(Int32.self, forKey: key).map { .signed(Int64($0)) } ?? .absent
        case .int64: try container.decodeIfPresent(Int64.self, forKey: key).map { .signed(Int64($0)) } ?? .absent
        case .uint: try container.decodeIfPresent(UInt.self, forKey: key).map { .unsigned(UInt64($0)) } ?? .absent
        case .uint8: try container.decodeIfPresent(UInt8.self, forKey: key).map { .unsigned(UInt64($0)) } ?? .absent
        case .uint16: try container.decodeIfPresent(UInt16.self, forKey: key).map { .unsigned(UInt64($0)) } ?? .absent
        case .uint32: try container.decodeIfPresent(UInt32.self, forKey: key).map { .unsigned(UInt64($0)) } ?? .absent
        case .uint64: try container.decodeIfPresent(UInt64.self, forKey: key).map { .unsigned(UInt64($0)) } ?? .absent
        }
    }

    func write(_ sample: Sample, _ container: inout any SingleValueEncodingContainer) throws {
        switch (self, sample) {
        case (.bool, .bool(let value)): try container.encode(value)
        case (.string, .string(let value)): try container.encode(value)
        case (.double, .double(let value)): try container.encode(value)
        case (.float, .float(let value)): try container.encode(value)
        case (.int, .signed(let value)): try container.encode(Int(value))
        case (.int8, .signed(let value)): try container.encode(Int8(value))
        case (.int16, .signed(let value)): try container.encode(Int16(value))
        case (.int32, .signed(let value)): try container.encode(Int32(value))
        case (.int64, .signed(let value)): try container.encode(Int64(value))
        case (.uint, .unsigned(let value)): try container.encode(UInt(value))
        case (.uint8, .unsigned(let value)): try container.encode(UInt8(value))
        case (.uint16, .unsigned(let value)): try container.encode(UInt16(value))
        case (.uint32, .unsigned(let value)): try container.encode(UInt32(value))
        case (.uint64, .unsigned(let value)): try container.encode(UInt64(value))
        default: break
        }
    }

    func write(_ sample: Sample, _ container: inout any UnkeyedEncodingContainer) throws {
        switch (self, sample) {
        case (.bool, .bool(let value)): try container.encode(value)
        case (.string, .string(let value)): try container.encode(value)
        case (.double, .double(let value)): try container.encode(value)
        case (.float, .float(let value)): try container.encode(value)
        case (.int, .signed(let value)): try container.encode(Int(value))
        case (.int8, .signed(let value)): try container.encode(Int8(value))
        case (.int16, .signed(let value)): try container.encode(Int16(value))
        case (.int32, .signed(let value)): try container.encode(Int32(value))
        case (.int64, .signed(let value)): try container.encode(Int64(value))
        case (.uint, .unsigned(let value)): try container.encode(UInt(value))
        case (.uint8, .unsigned(let value)): try container.encode(UInt8(value))
        case (.uint16, .unsigned(let value)): try container.encode(UInt16(value))
        case (.uint32, .unsigned(let value)): try container.encode(UInt32(value))
        case (.uint64, .unsigned(let value)): try container.encode(UInt64(value))
        default: break
        }
    }

    func write(_ sample: Sample, _ container: inout KeyedEncodingContainer<Name>, _ key: Name) throws {
        switch (self, sample) {
        case (.bool, .bool(let value)): try container.encode(value, forKey: key)
        case (.string, .string(let value)): try container.encode(value, forKey: key)
        case (.double, .double(let value)): try container.encode(value, forKey: key)
        case (.float, .float(let value)): try container.encode(value, forKey: key)
        case (.int, .signed(let value)): try container.encode(Int(value), forKey: key)
        case (.int8, .signed(let value)): try container.encode(Int8(value), forKey: key)
        case (.int16, .signed(let value)): try container.encode(Int16(value), forKey: key)
        case (.int32, .signed(let value)): try container.encode(Int32(value), forKey: key)
        case (.int64, .signed(let value)): try container.encode(Int64(value), forKey: key)
        case (.uint, .unsigned(let value)): try container.encode(UInt(value), forKey: key)
        case (.uint8, .unsigned(let value)): try container.encode(UInt8(value), forKey: key)
        case (.uint16, .unsigned(let value)): try container.encode(UInt16(value), forKey: key)
        case (.uint32, .unsigned(let value)): try container.encode(UInt32(value), forKey: key)
        case (.uint64, .unsigned(let value)): try container.encode(UInt64(value), forKey: key)
        default: break
        }
    }
}
