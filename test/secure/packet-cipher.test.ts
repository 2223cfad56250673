/** AES-GCM by each implementation: vectors of NIST (gcmEncryptExtIV), each other, and what is changed. */

import { beforeEach, describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { CIPHER_RULES, CIPHER_VARIABLE, chooseCipher, nodeCrypto } from '../../src/driver/cipher/cipher-choice.js';
import { ciphersRight } from '../../src/driver/cipher/cipher-self-test.js';
import { ipsecMb, isSameTag, processorFlags, variantFor } from '../../src/driver/cipher/ipsec-mb-cipher.js';
import { type ImplementationFactory, ImplementationSelection } from '../../src/driver/implementation-selection.js';
import { type CipherImplementation, type CipherMaker, NodeCipher } from '../../src/port/secure/packet-cipher.js';
import { Dice } from '../support/dice.js';
import { HAS_KOFFI } from '../support/has-koffi.js';

/** Every variant of ipsec-mb that this processor can execute is one of them. */
const VARIANTS = ['vaes_avx512', 'avx512', 'avx_gen4', 'avx_gen2', 'sse'];
const FLAGS = processorFlags();
const narrowerThan = VARIANTS.slice(Math.max(0, VARIANTS.indexOf(variantFor(FLAGS) ?? '')));

const ALL: ReadonlyArray<readonly [string, () => CipherImplementation]> = [
  ['node:crypto', nodeCrypto],
  ['openssl', CIPHER_RULES.candidates['openssl']],
  ...narrowerThan.map((variant) => [`ipsec-mb (${variant})`, () => ipsecMb(variant)] as const),
];

/** What makes its ciphers, or why there is nothing. */
function had(candidate: () => CipherImplementation): CipherMaker | string {
  try {
    return candidate().make;
  } catch (error) {
    return (error as Error).message;
  }
}
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

it.skipIf(!HAS_KOFFI)('the EVP functions are there on Linux', () => {
  expect(had(CIPHER_RULES.candidates['openssl'])).toBeTypeOf('function');
});

describe.each(ALL)('%s', (_, candidate) => {
  const make = had(candidate) as CipherMaker;
  beforeEach(({ skip }) => {
    if (typeof make === 'string') skip(make);
  });

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

describe('the choice', () => {
  const right = nodeCrypto();
  const { lastResort: _, ...rules } = CIPHER_RULES;
  type Candidates = Readonly<Record<string, ImplementationFactory<CipherImplementation>>>;
  /** Selects among these; the one called `cheap` costs least. */
  const among = (candidates: Candidates, cheap = '') =>
    new ImplementationSelection({ ...rules, candidates, costOf: ({ name }) => (name === cheap ? 1 : 2) });
  /** node:crypto, but for what `spoil` does to each cipher. */
  const flawed = (spoil: (cipher: NodeCipher) => void): CipherImplementation => ({
    name: 'flawed',
    make: (key) => {
      const cipher = new NodeCipher(key);
      spoil(cipher);
      return cipher;
    },
  });

  it('is the one that costs least', () => {
    const twin = { ...right, name: 'twin' };
    const candidates = { 'node:crypto': nodeCrypto, twin: () => twin };
    expect(among(candidates, 'twin').select('')).toBe(twin);
    expect(among(candidates, 'node:crypto').select('').name).toBe('node:crypto');
  });

  const flaws: Array<[string, (cipher: NodeCipher) => void]> = [
    ['opens everything', (cipher) => Object.assign(cipher, { open: () => true })],
    ['opens nothing', (cipher) => Object.assign(cipher, { open: () => false })],
    [
      'writes one byte too many',
      (cipher) => {
        const seal = cipher.seal.bind(cipher);
        cipher.seal = (text, textOffset, textBytes, packet, offset, clearBytes) => {
          seal(text, textOffset, textBytes, packet, offset, clearBytes);
          packet[offset + clearBytes + textBytes + 16] ^= 1;
        };
      },
    ],
    [
      'forgets the tag of long packets',
      (cipher) => {
        const seal = cipher.seal.bind(cipher);
        cipher.seal = (text, textOffset, textBytes, packet, offset, clearBytes) => {
          seal(text, textOffset, textBytes, packet, offset, clearBytes);
          if (textBytes > 4100) packet.fill(0, offset + clearBytes + textBytes, offset + clearBytes + textBytes + 16);
        };
      },
    ],
    [
      'does not look at the last byte of the tag',
      (cipher) => {
        const open = cipher.open.bind(cipher);
        cipher.open = (packet, offset, clearBytes, textBytes, text, textOffset) => {
          if (open(packet, offset, clearBytes, textBytes, text, textOffset)) return true;
          const copy = packet.slice();
          copy[offset + clearBytes + textBytes + 15] ^= 0x40;
          return open(copy, offset, clearBytes, textBytes, text, textOffset);
        };
      },
    ],
  ];
  it.each(flaws)('is not one that %s, however quick', (_, spoil) => {
    const wrong = flawed(spoil);
    expect(ciphersRight(right)).toBe(true);
    expect(ciphersRight(wrong)).toBe(false);
    const selection = among({ flawed: () => wrong, 'node:crypto': nodeCrypto }, 'flawed');
    expect(selection.select('').name).toBe('node:crypto');
    expect(() => selection.select('flawed')).toThrow(
      expect.objectContaining({
        code: 'ERR_ROCE_UNSUPPORTED',
        message: expect.stringContaining(`${CIPHER_VARIABLE} asks for flawed: it makes wrong packets`),
      }),
    );
  });

  it('is what a name says; one that there is not, or that is not here, is refused', () => {
    expect(chooseCipher('node:crypto').name).toBe('node:crypto');
    expect(() => chooseCipher('aes')).toThrow(
      expect.objectContaining({
        code: 'ERR_ROCE_UNKNOWN_NAME',
        message: expect.stringContaining('it is one of ipsec-mb, openssl, node:crypto'),
      }),
    );
    const missing = () => ipsecMb('avx10');
    expect(() => among({ missing }).select('missing')).toThrow(
      expect.objectContaining({ code: 'ERR_ROCE_UNSUPPORTED', message: expect.stringMatching(/asks for missing: \S/) }),
    );
  });
});

it('a variant of ipsec-mb is the widest that the processor can execute', () => {
  const flags = (text: string) => variantFor(new Set(text.split(' ')));
  const [sse, avx2] = ['sse4_2 aes pclmulqdq', 'avx avx2 bmi2'];
  const avx512 = 'avx512f avx512dq avx512cd avx512bw avx512vl';
  expect(flags('')).toBeUndefined();
  expect(flags('sse4_2 aes')).toBeUndefined();
  expect(flags(sse)).toBe('sse');
  expect(flags(`${sse} avx`)).toBe('avx_gen2');
  expect(flags(`${sse} ${avx2}`)).toBe('avx_gen4');
  // Zen 3: VAES without AVX-512.
  expect(flags(`${sse} ${avx2} vaes vpclmulqdq`)).toBe('avx_gen4');
  expect(flags(`${sse} ${avx2} ${avx512}`)).toBe('avx512');
  expect(flags(`${sse} ${avx2} ${avx512} vaes vpclmulqdq gfni avx512ifma`)).toBe('vaes_avx512');
  expect(processorFlags('/proc/version').size + processorFlags('/nowhere').size).toBe(0);
});

it('tags are the same when all their bits are', () => {
  const tag = Uint8Array.from({ length: 16 }, (_, i) => i * 15);
  const packet = new Uint8Array(20);
  packet.set(tag, 3);
  expect(isSameTag(tag, packet, 3)).toBe(true);
  for (let bit = 0; bit < 128; bit++) {
    packet[3 + (bit >> 3)] ^= 1 << (bit & 7);
    expect(isSameTag(tag, packet, 3)).toBe(false);
    packet[3 + (bit >> 3)] ^= 1 << (bit & 7);
  }
});
