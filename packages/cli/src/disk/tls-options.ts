import { alternatives, choiceOption } from '@rocev2/command';
import type { Command } from 'commander';
import { RoceError } from 'rocev2/internal/core';
import type { NbdServerOptions } from 'rocev2/internal/nbd';

const POLICIES = ['required', 'optional'] as const;

export interface TlsFlags {
  readonly tls?: (typeof POLICIES)[number];
  readonly tlsCerts?: string;
  readonly tlsPsk?: string;
  readonly tlsVerifyPeer?: boolean;
}

export function addTlsOptions(command: Command): Command {
  return command
    .option('--tls-certs <folder>', 'use TLS: a folder with server-cert.pem and server-key.pem')
    .option('--tls-psk <file>', 'use TLS: a file with a line USER:KEY for each client, the key in hexadecimal')
    .option(
      '--tls-verify-peer',
      'accept only clients whose certificate is signed by ca-cert.pem in the --tls-certs folder',
    )
    .option(
      '--tls <policy>',
      `${alternatives(POLICIES)}; optional also accepts plain clients, so an attacker on the path can downgrade (default: required)`,
      choiceOption(POLICIES),
    );
}

export function tlsOf({ tls, tlsCerts, tlsPsk, tlsVerifyPeer }: TlsFlags): Pick<NbdServerOptions, 'tls'> {
  if (tlsCerts !== undefined && tlsPsk !== undefined) {
    throw new RoceError('ERR_ROCE_CONFLICT', 'a server has certificates or keys', 'give --tls-certs or --tls-psk');
  }
  if (tlsVerifyPeer === true && tlsCerts === undefined) {
    throw new RoceError('ERR_ROCE_CONFLICT', '--tls-verify-peer needs a ca-cert.pem', 'give its folder by --tls-certs');
  }
  if (tlsCerts === undefined && tlsPsk === undefined) {
    if (tls === undefined) return {};
    throw new RoceError('ERR_ROCE_CONFLICT', '--tls needs certificates or keys', 'give --tls-certs or --tls-psk');
  }
  return {
    tls: {
      ...(tlsCerts !== undefined && { certificates: tlsCerts }),
      ...(tlsPsk !== undefined && { pskFile: tlsPsk }),
      ...(tlsVerifyPeer !== undefined && { verifyPeer: tlsVerifyPeer }),
      ...(tls !== undefined && { policy: tls }),
    },
  };
}
