import COpenSSL
import Cluster

/// Authenticated encryption of cursors with AES-SIV (RFC 5297) under one key: short, and safe without nonces for the
/// many cursors of a gateway. Equal cursors have equal texts.
final class CursorSeal: Sendable {
    static let tagLength = 16

    /// Contexts with the key, which are only copied: setting the key takes longer than encrypting a cursor.
    ///
    /// Invariant: not changed after initialization.
    nonisolated(unsafe) private let encryption: OpaquePointer
    nonisolated(unsafe) private let decryption: OpaquePointer

    /// - Parameter key: 32 bytes.
    init(key: [UInt8]) {
        precondition(key.count == ClusterKey.length)
        let algorithm = EVP_CIPHER_fetch(nil, "AES-128-SIV", nil)
        defer { EVP_CIPHER_free(algorithm) }
        guard let encryption = EVP_CIPHER_CTX_new(), let decryption = EVP_CIPHER_CTX_new(),
            EVP_EncryptInit_ex(encryption, algorithm, nil, key, nil) == 1,
            EVP_DecryptInit_ex(decryption, algorithm, nil, key, nil) == 1
        else { preconditionFailure("OpenSSL does not provide AES-128-SIV") }
        (self.encryption, self.decryption) = (encryption, decryption)
    }

    deinit {
        EVP_CIPHER_CTX_free(encryption)
        EVP_CIPHER_CTX_free(decryption)
    }

    /// Encrypts a text: the tag, followed by the ciphertext.
    ///
    /// - Parameter context: not empty; the text can be opened only with the same context.
    func seal(_ text: [UInt8], for context: [UInt8]) -> [UInt8] {
        var (tag, body) = ([UInt8](repeating: 0, count: Self.tagLength), [UInt8](repeating: 0, count: text.count))
        var count: Int32 = 0
        let isSealed = Self.withCopy(of: encryption) { cipher in
            EVP_EncryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
                && EVP_EncryptUpdate(cipher, &body, &count, text, Int32(text.count)) == 1
                && EVP_EncryptFinal_ex(cipher, nil, &count) == 1
                && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagLength), &tag) == 1
        }
        precondition(isSealed, "OpenSSL does not provide AES-128-SIV")
        return tag + body
    }

    /// Decrypts a text; nil if it was not sealed with this key for this context.
    func open(_ sealed: [UInt8], for context: [UInt8]) -> [UInt8]? {
        guard sealed.count > Self.tagLength else { return nil }
        var tag = Array(sealed.prefix(Self.tagLength))
        let body = Array(sealed.dropFirst(Self.tagLength))
        var text = [UInt8](repeating: 0, count: body.count)
        var count: Int32 = 0
        let isOpened = Self.withCopy(of: decryption) { cipher in
            EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagLength), &tag) == 1
                && EVP_DecryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
                && EVP_DecryptUpdate(cipher, &text, &count, body, Int32(body.count)) == 1
                && EVP_DecryptFinal_ex(cipher, nil, &count) == 1
        }
        guard isOpened else {
            // Otherwise a later call of OpenSSL on this thread would report this failure.
            ERR_clear_error()
            return nil
        }
        return text
    }

    private static func withCopy(of template: OpaquePointer, _ body: (OpaquePointer) -> Bool) -> Bool {
        guard let cipher = EVP_CIPHER_CTX_new() else { return false }
        defer { EVP_CIPHER_CTX_free(cipher) }
        return EVP_CIPHER_CTX_copy(cipher, template) == 1 && body(cipher)
    }
}
