/**
 * Secrets of packets as text, so that their holder can read a capture: lines in the form of the key logs of TLS (NSS,
 * `SSLKEYLOGFILE`), one for each direction of an association:
 *
 *     ROCEV2_PSP_SECRET <SPI of the packets, 8 hex digits> <first secret of the direction, 64 hex digits>
 *
 * All keys of the direction follow from the secret ({@link KeySchedule}). Lines with other labels and comments (`#`)
 * are ignored.
 */

import { RoceError } from '../../core/errors.js';
import type { AssociationTerms } from '../../memory/ring/protection.js';

const LABEL = 'ROCEV2_PSP_SECRET';
const LINE = /^ROCEV2_PSP_SECRET ([0-9a-f]{8}) ([0-9a-f]{64})$/i;

export interface LoggedSecret {
  /** In the packets, 31 bits. */
  readonly spi: number;
  readonly secret: Uint8Array;
}

export function keyLogLines({ spi, remoteSpi, sendSecret, receiveSecret }: AssociationTerms): string {
  return keyLogLine(remoteSpi, sendSecret) + keyLogLine(spi, receiveSecret);
}

function keyLogLine(spi: number, secret: Uint8Array): string {
  return `${LABEL} ${spi.toString(16).padStart(8, '0')} ${Buffer.from(secret).toString('hex')}\n`;
}

export function parseKeyLog(text: string, name = 'the key log'): LoggedSecret[] {
  return text.split(/\r?\n/).flatMap((line, index) => {
    if (!line.startsWith(LABEL)) return [];
    const [, spi, secret] = LINE.exec(line.trimEnd()) ?? [];
    if (spi !== undefined)
      return [{ spi: Number.parseInt(spi, 16), secret: new Uint8Array(Buffer.from(secret, 'hex')) }];
    throw new RoceError(
      'ERR_ROCE_MALFORMED',
      `line ${index + 1} of ${name} is not a secret`,
      `a line is ${LABEL}, 8 hex digits, 64 hex digits`,
    );
  });
}
