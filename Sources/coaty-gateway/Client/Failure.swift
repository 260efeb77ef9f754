import ArgumentParser
import Foundation

/// The failure of a command, with its exit code.
enum Failure: Error, CustomStringConvertible {
    /// The gateway, or the agent that was called, refused the request.
    case refused(String)
    /// No agent responded in time.
    case noResponse
    /// The gateway can't be reached.
    case unreachable(String)
    /// Something responds that is not a gateway, or can't be trusted.
    case notAGateway(String)

    var description: String {
        switch self {
        case .refused(let reason), .unreachable(let reason), .notAGateway(let reason): reason
        case .noResponse: "no agent responded in time"
        }
    }

    private var code: ExitCode {
        switch self {
        case .refused: ExitCode(1)
        case .noResponse: ExitCode(3)
        // EX_UNAVAILABLE of sysexits.h.
        case .unreachable, .notAGateway: ExitCode(69)
        }
    }

    static let exitCodes = """
        EXIT CODES:
          0   success
          1   the gateway or the agent refused the request
          3   no agent responded in time
          64  invalid arguments
          69  the gateway can't be reached
          74  standard output can't be written
        """

    /// What helps if the gateway was not found at the address.
    private var hint: String {
        switch self {
        case .unreachable, .notAGateway: "; if the gateway has another address, use --url"
        case .refused, .noResponse: ""
        }
    }

    /// Prints an error of a file or of a setting, and returns the exit code for it. A `ValidationError` would also print
    /// the usage of the command.
    static func invalid(_ error: any Error) -> ExitCode {
        Output.report("\(error)")
        return .validationFailure
    }

    /// Runs the work of a command for a running gateway; prints its failure, and exits with the code.
    static func reported(_ work: () throws -> Void) throws {
        // A closed pipe is an error of a write.
        signal(SIGPIPE, SIG_IGN)
        do {
            try work()
        } catch let failure as Failure {
            Output.report("\(failure)\(failure.hint)")
            throw failure.code
        }
    }
}

/// Lines on standard output, each written at once, and on standard error.
enum Output {
    /// EX_IOERR of sysexits.h.
    private static let ioError: Int32 = 74

    /// Writes a line. Ends the command if that fails.
    static func line(_ bytes: some Sequence<UInt8>) {
        var line = Data(bytes)
        line.append(UInt8(ascii: "\n"))
        do {
            try FileHandle.standardOutput.write(contentsOf: line)
        } catch {
            report("standard output can't be written")
            exit(ioError)
        }
    }

    /// Writes a message on standard error. Its control characters, which a terminal would obey, are replaced.
    static func report(_ text: String) {
        let text = String(
            text.map {
                $0.isNewline || $0.unicodeScalars.contains { $0.value < 0x20 || 0x7F...0x9F ~= $0.value } ? "?" : $0
            }
        )
        try? FileHandle.standardError.write(contentsOf: Data("coaty-gateway: \(text)\n".utf8))
    }
}
