import Base
import Glibc

/// The header of the PROXY protocol, version 2, in which a proxy sends its client's address at the start of a
/// connection.
enum ProxyHeader: Equatable {
    /// The header is not complete yet.
    case incomplete
    /// Not a header, or a version that is not supported.
    case invalid
    /// A header of this many bytes. The address is nil if the proxy opened the connection itself, as in health checks,
    /// or sends no address.
    case complete(length: Int, address: String?)

    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    private static let fixedLength = 16
    /// Maximum length of a header: with addresses and some of the extensions that a proxy may append.
    static let maximumLength = 552

    /// Reads the start of a connection.
    init(_ bytes: [UInt8]) {
        let known = min(bytes.count, Self.signature.count)
        guard bytes[..<known].elementsEqual(Self.signature[..<known]) else {
            self = .invalid
            return
        }
        guard bytes.count >= Self.fixedLength else {
            self = .incomplete
            return
        }
        let length = Self.fixedLength + (Int(bytes[14]) << 8 | Int(bytes[15]))
        let (command, family) = (bytes[12], bytes[13])
        guard length <= Self.maximumLength, command == 0x20 || command == 0x21 else {
            self = .invalid
            return
        }
        guard bytes.count >= length else {
            self = .incomplete
            return
        }
        let addresses = bytes[Self.fixedLength..<length]
        switch (command, family) {
        case (0x21, 0x11):
            self = addresses.count >= 12 ? .complete(length: length, address: Self.v4(addresses)) : .invalid
        case (0x21, 0x21):
            self = addresses.count >= 36 ? .complete(length: length, address: Self.v6(addresses)) : .invalid
        default: self = .complete(length: length, address: nil)
        }
    }

    private static func v4(_ addresses: ArraySlice<UInt8>) -> String {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_INET)
        // The address follows the family and the port.
        withUnsafeMutableBytes(of: &storage) { $0[4..<8].copyBytes(from: addresses.prefix(4)) }
        return numericAddress(of: storage)
    }

    private static func v6(_ addresses: ArraySlice<UInt8>) -> String {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_INET6)
        // The address follows the family, the port and the flow.
        withUnsafeMutableBytes(of: &storage) { $0[8..<24].copyBytes(from: addresses.prefix(16)) }
        return numericAddress(of: storage)
    }
}
