import CMosquitto
import Coaty
import Foundation

extension ConnectionError {
    /// Creates the cause of a failed call of libmosquitto.
    ///
    /// - Parameters:
    ///   - address: the broker's address, for people.
    ///   - refusal: the code by which the broker has refused the connection.
    ///   - wasConnected: whether the broker had accepted the connection.
    ///   - isSocketConnected: whether the TCP connection was established.
    ///   - handshake: what is known of the TLS handshake; nil without TLS.
    ///   - diagnosis: the reported TLS errors.
    ///   - disconnectReason: the code of the broker's DISCONNECT packet.
    init(
        _ error: MosquittoError,
        address: String,
        refusal: Int32?,
        wasConnected: Bool,
        isSocketConnected: Bool,
        handshake: cmosq_handshake?,
        diagnosis: TLSDiagnosis?,
        disconnectReason: Int32?
    ) {
        if let refusal {
            self.init(refusal: refusal, address)
            return
        }
        if let disconnectReason {
            self.init(
                .closed,
                "\(address): the broker closed the connection: \(DisconnectReason.text(disconnectReason))"
            )
            return
        }
        let diagnosed = wasConnected ? nil : diagnosis?.error
        // With TLS 1.3, the broker checks the certificate after the client's handshake. If the client has sent CONNECT
        // meanwhile, the kernel drops the alert that would tell the cause.
        if let handshake, handshake.is_over, handshake.may_refuse_certificate, !wasConnected, Self.isEnd(error),
            diagnosed.map({ $0.reason == .tlsNotOffered }) ?? true
        {
            self.init(.tlsClientCertificate, "\(address): \(TLSDiagnosis.refusedCertificate)")
            return
        }
        if let diagnosed {
            self.init(diagnosed.reason, "\(address): \(diagnosed.message)")
            return
        }
        let usesTLS = handshake != nil
        let isShakingHands = !wasConnected && handshake?.is_over == false
        switch error.code {
        case MOSQ_ERR_EAI.rawValue:
            self.init(.hostNotFound, "\(address): the broker's name can't be resolved")
        case MOSQ_ERR_ERRNO.rawValue where error.errno == ECONNREFUSED:
            self.init(.connectionRefused, "\(address): connection refused; does the broker run, and on this port?")
        case MOSQ_ERR_ERRNO.rawValue where error.errno == ETIMEDOUT && isSocketConnected && !wasConnected:
            self.init(.noAnswer, "\(address): the broker takes connections but does not answer")
        case MOSQ_ERR_ERRNO.rawValue where error.errno == ETIMEDOUT:
            self.init(
                .timedOut,
                "\(address): no answer in time; is the address right, or does a firewall drop packets?"
            )
        case MOSQ_ERR_ERRNO.rawValue where isShakingHands && Self.isEnd(error),
            MOSQ_ERR_TLS.rawValue where isShakingHands:
            // On this machine, the handshake can end before it is known whether the connection was accepted.
            self.init(
                .tlsNotOffered,
                "\(address): "
                    + (isSocketConnected
                        ? TLSDiagnosis.closedDuringHandshake
                        : "refused, or closed during the TLS handshake; does the broker run, and does it offer TLS on this port?")
            )
        // libmosquitto 2.0.21 (Debian 13) reports the end of a TLS connection as EPROTO, without a line in its log.
        case MOSQ_ERR_ERRNO.rawValue where Self.isEnd(error) && (usesTLS || error.errno != EPROTO),
            MOSQ_ERR_CONN_LOST.rawValue, MOSQ_ERR_NO_CONN.rawValue, MOSQ_ERR_TLS.rawValue:
            self.init(closedBy: address, wasConnected: wasConnected, usesTLS: usesTLS)
        case MOSQ_ERR_ERRNO.rawValue:
            self.init(.network, "\(address): \(String(cString: strerror(error.errno)))")
        case MOSQ_ERR_KEEPALIVE.rawValue:
            self.init(.noAnswer, "\(address): the broker stopped answering")
        case MOSQ_ERR_OVERSIZE_PACKET.rawValue:
            self.init(
                .protocol,
                "\(address): the broker was sending a packet that is longer than accepted; which agent publishes so much at once?"
            )
        default:
            self.init(.protocol, "\(address): \(String(cString: mosquitto_strerror(error.code)))")
        }
    }

    /// Whether the error is the end of a connection.
    private static func isEnd(_ error: MosquittoError) -> Bool {
        switch error.code {
        case MOSQ_ERR_ERRNO.rawValue: [ECONNRESET, EPIPE, EPROTO].contains(error.errno)
        case MOSQ_ERR_CONN_LOST.rawValue, MOSQ_ERR_TLS.rawValue: true
        default: false
        }
    }

    private init(closedBy address: String, wasConnected: Bool, usesTLS: Bool) {
        if wasConnected {
            self.init(.closed, "\(address): the broker closed the connection")
        } else {
            let hint = usesTLS ? "does it offer TLS on this port?" : "does it expect TLS on this port?"
            self.init(.closed, "\(address): the broker closed the connection before it accepted it; \(hint)")
        }
    }

    /// Creates the cause of a refusal (MQTT 3.1.1, section 3.2.2.3; MQTT 5, section 3.2.2.2).
    private init(refusal: Int32, _ address: String) {
        switch refusal {
        case 1, 0x84:
            self.init(
                .protocolVersion,
                "\(address): the broker does not support this version of MQTT; see mqtt-version"
            )
        case 2, 0x85: self.init(.clientIdRejected, "\(address): the broker refuses the client identifier")
        case 3, 0x88, 0x89: self.init(.brokerUnavailable, "\(address): the broker reports that it is not available")
        case 4, 0x86: self.init(.badCredentials, "\(address): wrong user name or password")
        case 5, 0x87, 0x8A:
            self.init(.notAuthorized, "\(address): the broker refuses this agent; check user name and password")
        default:
            self.init(
                .protocol,
                "\(address): the broker refuses the connection with code \(DisconnectReason.text(refusal))"
            )
        }
    }
}
