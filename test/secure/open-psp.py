"""Opens packets in PSP by the specification and by RFC 5869 alone: {secret, packets} as JSON on stdin, in hexadecimal."""

import json
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def derive(secret, label, length):
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=None, info=label).derive(secret)


given = json.load(sys.stdin)
secret = bytes.fromhex(given["secret"])
keys = []
for _ in range(64):
    keys.append(derive(secret, b"rocev2 psp key", 16))
    secret = derive(secret, b"rocev2 psp next", 32)

epoch = 0
opened = []
epochs = []
for text in given["packets"]:
    packet = bytes.fromhex(text)
    next_header, length, crypt_offset, flags = packet[:4]
    assert length == 1 and flags == 1, "one octet group behind the first, version 0"
    if packet[4] >> 7 != epoch & 1:
        epoch += 1
    clear = 16 + 4 * (crypt_offset & 63)
    plain = AESGCM(keys[epoch]).decrypt(packet[4:16], packet[clear:], packet[:clear])
    if next_header == 59:
        assert plain == b""
        continue
    assert next_header == 17
    assert int.from_bytes(packet[18:20], "big") == 4791
    roce = packet[24:clear] + plain
    assert int.from_bytes(packet[20:22], "big") == 8 + len(roce), "the length of the inner UDP header"
    opened.append(roce.hex())
    epochs.append(epoch)
json.dump({"keys": [key.hex() for key in keys], "packets": opened, "epochs": epochs}, sys.stdout)
