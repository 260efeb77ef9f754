package import ProblemDetails

/// An error of the gateway's own code that has a problem for clients.
package protocol ProblemError: Error {
    /// What a client gets as the reason.
    var problem: Problem { get }
}
