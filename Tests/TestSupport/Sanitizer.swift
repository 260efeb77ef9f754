import Foundation

/// Whether the tests and the programs that they start are built with a sanitizer, which makes them several times slower
/// and larger. `make test SANITIZE=…` sets the variable.
public let isSanitized = ProcessInfo.processInfo.environment["COATY_SANITIZER"] != nil
