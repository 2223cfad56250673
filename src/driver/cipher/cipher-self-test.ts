/**
 * Whether a cipher is AES-GCM: a known answer for each length of key (McGrew and Viega's test cases 4 and 16), then
 * packets of many lengths and offsets against node:crypto in both directions; a packet with one changed bit must not be
 * opened.
 */

import { patternlessBytes } from '../../core/patternless-bytes.js';
import { type CipherImplementation, NodeCipher, type PacketCipher } from '../../port/secure/packet-cipher.js';

const hex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'));

const NONCE = hex('cafebabefacedbaddecaf888');
const TEXT = hex(
  'd9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39',
);
const KEY = 'feffe9928665731c6d6a8f9467308308';
const KNOWN_ANSWERS = [
  [
    KEY,
    '42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091',
  ],
  [
    KEY + KEY,
    '522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662',
  ],
] as const;
const HEADER_BYTES = 16;
const NONCE_AT = 4;

/** Around the blocks of AES, the widths in which vector code takes them, and packets of all path MTUs. */
const LENGTHS = [
  0, 1, 15, 16, 17, 31, 32, 47, 63, 64, 65, 127, 128, 129, 191, 255, 256, 257, 300, 511, 513, 767, 769, 1023, 1044,
  1500, 2048, 2068, 4095, 4112, 4120,
];
const CLEAR_BYTES = [16, 36];
const OFFSETS = [0, 4, 7, 33];
const ROOM_BYTES = 4300;

export function ciphersRight({ make }: CipherImplementation): boolean {
  return knowsAnswers(make) && [16, 32].every((keyBytes) => agreesWithNode(make, keyBytes));
}

function knowsAnswers(make: CipherImplementation['make']): boolean {
  return KNOWN_ANSWERS.every(([key, answer]) => {
    const cipher = make(hex(key));
    const packet = new Uint8Array(new ArrayBuffer(HEADER_BYTES + TEXT.length + 16));
    packet.set(NONCE, NONCE_AT);
    cipher.seal(TEXT, 0, TEXT.length, packet, 0, HEADER_BYTES);
    cipher.close();
    return Buffer.from(answer, 'hex').equals(packet.subarray(HEADER_BYTES, HEADER_BYTES + TEXT.length));
  });
}

function agreesWithNode(make: CipherImplementation['make'], keyBytes: number): boolean {
  const bytes = patternlessBytes(2 * ROOM_BYTES);
  const key = bytes.slice(0, keyBytes);
  const [tried, trusted] = [make(key.slice()), new NodeCipher(key)];
  const isRight = LENGTHS.every((textBytes, i) => {
    const offset = OFFSETS[i % OFFSETS.length];
    const clearBytes = CLEAR_BYTES[i % CLEAR_BYTES.length];
    const text = bytes.slice(ROOM_BYTES, ROOM_BYTES + textBytes + offset);
    return isRightFor({ tried, trusted, text, textBytes, offset, clearBytes });
  });
  tried.close();
  trusted.close();
  return isRight;
}

interface Trial {
  readonly tried: PacketCipher;
  readonly trusted: PacketCipher;
  readonly text: Uint8Array;
  readonly textBytes: number;
  readonly offset: number;
  readonly clearBytes: number;
}

function isRightFor({ tried, trusted, text, textBytes, offset, clearBytes }: Trial): boolean {
  const [ours, theirs] = [patternlessBytes(ROOM_BYTES).slice(), patternlessBytes(ROOM_BYTES).slice()];
  const from = text.length - textBytes;
  tried.seal(text, from, textBytes, ours, offset, clearBytes);
  trusted.seal(text, from, textBytes, theirs, offset, clearBytes);
  if (!Buffer.from(ours).equals(theirs)) return false;
  const opened = new Uint8Array(new ArrayBuffer(text.length));
  if (!tried.open(ours, offset, clearBytes, textBytes, opened, from)) return false;
  if (!Buffer.from(opened.subarray(from)).equals(text.subarray(from))) return false;
  const end = offset + clearBytes + textBytes + 16;
  return [offset, offset + NONCE_AT, offset + clearBytes, end - 16, end - 1].every((at) => {
    ours[at] ^= 0x40;
    const isOpened = tried.open(ours, offset, clearBytes, textBytes, opened, from);
    ours[at] ^= 0x40;
    return !isOpened;
  });
}
