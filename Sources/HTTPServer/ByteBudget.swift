extension HTTPServer {
    /// The memory for request bodies that are being received.
    ///
    /// It is requested in steps of 16 KiB. Both methods are called on the server's threads and must not block.
    public protocol ByteBudget: AnyObject, Sendable {
        /// Takes bytes if enough are available.
        ///
        /// - Returns: whether the bytes were taken; if not, the request gets 503.
        func take(_ bytes: Int) -> Bool

        /// Gives back bytes that were taken.
        func give(_ bytes: Int)
    }
}

/// An incomplete request body, and its memory.
struct InboundBody: ~Copyable {
    /// The result of adding a part to the body.
    enum Outcome {
        case taken
        /// The body exceeds the maximum length.
        case tooLong
        /// The budget has no memory for it.
        case overBudget
    }

    /// Number of bytes that are requested from the budget at a time.
    private static let step = 16 * 1024
    /// Maximum number of bytes that are reserved for a declared length.
    private static let maximumReservation = 64 * 1024

    /// The bytes received so far.
    private(set) var bytes: [UInt8] = []
    private let budget: (any HTTPServer.ByteBudget)?
    private var reserved = 0
    private var taken = 0

    init(budget: (any HTTPServer.ByteBudget)?) { self.budget = budget }

    deinit {
        if taken > 0 { budget?.give(taken) }
    }

    /// Adds a part.
    ///
    /// - Parameters:
    ///   - declaredLength: the length of the whole body; nil if it is not known.
    ///   - limit: the maximum length.
    mutating func append(_ part: UnsafeRawBufferPointer, declaredLength: Int?, limit: Int) -> Outcome {
        let length = bytes.count + part.count
        guard length <= limit else { return .tooLong }
        if length > reserved {
            // A body that has arrived completely is not charged: it is handled next.
            let size = length == declaredLength ? length : size(for: length, declaredLength, limit)
            if length != declaredLength || taken > 0 {
                let missing = (size + Self.step - 1) / Self.step * Self.step - taken
                guard missing <= 0 || budget?.take(missing) ?? true else { return .overBudget }
                taken += max(0, missing)
            }
            bytes.reserveCapacity(size)
            reserved = size
        }
        bytes.append(contentsOf: part)
        return .taken
    }

    /// Returns twice the previous size, limited to the possible length.
    private func size(for length: Int, _ declaredLength: Int?, _ limit: Int) -> Int {
        if bytes.isEmpty, let declaredLength { return max(length, min(declaredLength, Self.maximumReservation)) }
        return max(length, min(max(2 * reserved, Self.step), declaredLength ?? limit))
    }
}
