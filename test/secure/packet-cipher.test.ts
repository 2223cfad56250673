/** AES-GCM by both implementations: vectors of NIST (gcmEncryptExtIV), each other, and what is changed. */

import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { evpUnavailable, fastestCipher } from '../../src/driver/evp-cipher.js';
import { type CipherMaker, NodeCipher } from '../../src/secure/packet-cipher.js';
import { Dice } from '../support/dice.js';

const MAKERS: ReadonlyArray<readonly [string, CipherMaker]> = [
  ['node:crypto', (key) => new NodeCipher(key)],
  ['EVP through koffi', fastestCipher],
];
const hex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'));

/** The test cases 4 and 16 of McGrew and Viega's specification of GCM, also in NIST's: 12 bytes of nonce, 60 of text. */
const NONCE = 'cafebabefacedbaddecaf888';
const TEXT =
  'd9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39';
const VECTORS = [
  [
    'feffe9928665731c6d6a8f9467308308',
    '42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091',
    '5bc94fbc3221a5db94fae95ae7121a47',
  ],
  [
    'feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308',
    '522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662',
    '76fc6ece0f4e1768cddf8853bb2d551b',
  ],
] as const;

it('the EVP functions are there on Linux', () => {
  if (process.platform === 'linux') expect(evpUnavailable()).toBeUndefined();
});

describe.each(MAKERS)('%s', (_, make) => {
  it.each(VECTORS)('key %s', (key, ciphertext, tag) => {
    // The nonce stands in the additional data here, as in PSP; the vectors have it apart. So the text is checked, and the tag by the other test.
    const cipher = make(hex(key));
    const packet = new Uint8Array(16 + 60 + 16);
    packet.set(hex(NONCE), 4);
    cipher.seal(hex(TEXT), 0, 60, packet, 0, 16);
    expect(Buffer.from(packet.subarray(16, 76)).toString('hex')).toBe(ciphertext);
    expect(Buffer.from(packet.subarray(76)).toString('hex')).not.toBe(tag);
    cipher.close();
  });

  it('opens what the other has sealed, of any length, and nothing that was changed in one bit', () => {
    const dice = new Dice(new SeededRandom(7).stream('ciphers'));
    for (const keyBytes of [16, 32]) {
      const key = hex('00'.repeat(keyBytes)).map(() => dice.int(0, 255));
      const [own, other] = [make(key.slice()), new NodeCipher(key.slice())];
      for (const length of [0, 1, 15, 16, 17, 64, 1500, 4120]) {
        const text = new Uint8Array(new ArrayBuffer(length + 8)).map(() => dice.int(0, 255));
        const packet = new Uint8Array(length + 100);
        for (let i = 0; i < 39; i++) packet[i] = dice.int(0, 255);
        own.seal(text, 8, length, packet, 3, 36);
        const opened = new Uint8Array(length + 4);
        expect(other.open(packet, 3, 36, length, opened, 4)).toBe(true);
        expect(opened.subarray(4)).toEqual(text.subarray(8));
        expect(own.open(packet, 3, 36, length, opened, 4)).toBe(true);
        for (let n = 0; n < 20; n++) {
          const bit = dice.int(3 * 8 + 32, (3 + 36 + length + 16) * 8 - 1);
          packet[bit >> 3] ^= 1 << (bit & 7);
          expect(own.open(packet, 3, 36, length, opened, 4)).toBe(false);
          packet[bit >> 3] ^= 1 << (bit & 7);
        }
      }
      own.close();
    }
  });
});
