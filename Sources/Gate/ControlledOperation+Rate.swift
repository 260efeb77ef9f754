import Base

extension ControlledOperation {
    /// The rate kind of the operation, in addition to the request for it.
    var rate: Rate.Kind? {
        switch kind.verb {
        case .publish, .request, .answer: .publications
        case .observe: isNewWork ? .subscriptions : nil
        case .read, .route, .register, .administer: nil
        }
    }
}
