import { type Command, Option } from 'commander';
import { RoceError } from 'rocev2/internal/core';
import { readPrivateFile } from 'rocev2/internal/driver';
import { PACKET_CIPHERS, type PacketCipherName } from 'rocev2/internal/memory';
import { readPskFile } from 'rocev2/internal/nbd';
import { SECURE_MODES, type SecureMode, type SecureOptions } from 'rocev2/internal/verbs';
import { addProtectionOptions } from './help-format.js';
import { readInputFile } from './input-file.js';
import { alternatives, choiceOption } from './options.js';

export interface SecureFlags {
  readonly secure?: SecureMode;
  readonly psk?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly ca?: string;
  readonly allow?: readonly string[];
  readonly cipher?: PacketCipherName;
  readonly keylog?: string;
}

export function addSecureOptions(command: Command): Command {
  return addProtectionOptions(command, (group) =>
    group
      .addOption(
        new Option(
          '--secure [mode]',
          `authenticate and encrypt packets: ${alternatives(SECURE_MODES)}; without MODE: require (docs/security.md)`,
        )
          .argParser(choiceOption(SECURE_MODES))
          .preset('require'),
      )
      .option('--psk <file>', 'pre-shared keys: a file with a line NAME:KEY for each end, the key in hexadecimal')
      .option('--cert <file>', 'certificate of this end (PEM), instead of --psk')
      .option('--key <file>', 'private key of the certificate')
      .option('--ca <file>', 'root certificates of the peers')
      .option(
        '--allow <names>',
        'accepted peer identities, comma-separated (default: any authenticated peer)',
        (text: string) => text.split(','),
      )
      .addOption(
        new Option(
          '--cipher <name>',
          `${alternatives(PACKET_CIPHERS)}; the stronger cipher of the two ends is used`,
        ).argParser(choiceOption(PACKET_CIPHERS)),
      )
      .option('--keylog <file>', 'append packet secrets to this file, for the option --keys of decode and audit'),
  );
}

export function isSecured({ secure, psk, cert }: SecureFlags): boolean {
  return secure === undefined ? psk !== undefined || cert !== undefined : secure !== 'off';
}

export function secureFlagsOf({ secure, psk, cert, key, ca, allow, cipher, keylog }: SecureFlags): SecureFlags {
  return {
    ...(secure !== undefined && { secure }),
    ...(psk !== undefined && { psk }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(ca !== undefined && { ca }),
    ...(allow !== undefined && { allow }),
    ...(cipher !== undefined && { cipher }),
    ...(keylog !== undefined && { keylog }),
  };
}

export async function secureOf(flags: SecureFlags): Promise<{ readonly secure?: SecureOptions }> {
  const { secure, psk, cert, key, ca, allow, cipher, keylog } = flags;
  if (!isSecured(flags)) {
    const isMeant = [key, ca, allow, cipher, keylog].some((option) => option !== undefined);
    if (secure === undefined && isMeant) throw noCredentials();
    return {};
  }
  if (psk === undefined && cert === undefined) throw noCredentials();
  if (psk !== undefined && cert !== undefined) {
    throw new RoceError('ERR_ROCE_CONFLICT', '--psk and --cert exclude each other', 'give only one of them');
  }
  if (cert !== undefined && (key === undefined || ca === undefined)) {
    throw new RoceError('ERR_ROCE_CONFLICT', '--cert needs --key and --ca', 'give the files of all three');
  }
  const keys = psk === undefined ? undefined : await readPskFile(psk);
  return {
    secure: {
      ...(secure !== undefined && secure !== 'off' && { mode: secure }),
      ...(keys !== undefined && { psk: [...keys].map(([identity, bytes]) => ({ identity, key: bytes })) }),
      ...(cert !== undefined && {
        cert: await read(cert),
        key: (await readPrivateFile(key!)).toString('utf8'),
        ca: await read(ca!),
      }),
      ...(allow !== undefined && { allow }),
      ...(cipher !== undefined && { cipher }),
      ...(keylog !== undefined && { keyLog: keylog }),
    },
  };
}

function noCredentials(): RoceError {
  return new RoceError('ERR_ROCE_CONFLICT', '--secure needs credentials', 'give --psk, or --cert, --key and --ca');
}

async function read(path: string): Promise<string> {
  return (await readInputFile(path)).toString('utf8');
}
