/**
 * `--connect stream:NAME@MANAGER`: asks the manager which server has the disk, at the start and whenever that server is
 * gone or has lost it.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { type Output, resolveHost, type SecureFlags } from '@rocev2/command';
import type { DiskOwner, ExtentTransport } from '@rocev2/extents';
import { openClusterOf, parseStreamBackend } from '@rocev2/extents/internal';
import { parseHostPort, RoceError } from 'rocev2/internal/core';
import type { FindServer, ServerAddress } from 'rocev2/internal/storage-rpc';

const RETRY_MS = 500;

export interface FollowedDisk extends AsyncDisposable {
  readonly name: string;
  readonly find: FindServer;
  readonly uuid?: string;
  firstPlace(): Promise<ServerAddress>;
}

export async function openFollowed(
  text: string,
  { transport, ...keys }: SecureFlags & { readonly transport: ExtentTransport },
  output: Output,
): Promise<FollowedDisk> {
  const place = parseStreamBackend(text);
  const { disk: name } = place;
  if (place.takeOver) {
    const hint = "leave it out; 'rocev2 disk serve' takes disks over";
    throw new RoceError('ERR_ROCE_CONFLICT', 'a gateway that connects to a server owns no disk', hint);
  }
  const cluster = await openClusterOf({ ...place, ...(transport === 'tcp' && { transport }) }, keys, output);
  const { client } = cluster;
  try {
    const { isSnapshot, uuid } = (await client.diskMetadata(name)) ?? {};
    if (isSnapshot === true) {
      const hint = 'read it with --backend instead of --connect';
      throw new RoceError('ERR_ROCE_CONFLICT', `'${name}' is a snapshot, and snapshots have no owner`, hint);
    }
    return {
      name,
      find: async () => {
        const { address } = await client.diskOwner(name);
        return address === undefined ? undefined : resolveServer(address);
      },
      ...(uuid !== undefined && { uuid }),
      firstPlace: async () => {
        let told = '';
        for (let last = ''; ; ) {
          const owner = await client.diskOwner(name);
          if (owner.address !== undefined) return resolveServer(owner.address);
          const notice = whyNobody(name, text, owner);
          if (notice !== told && (notice === last || owner.owner === undefined)) {
            output.note(notice);
            told = notice;
          }
          last = notice;
          await delay(RETRY_MS, undefined, { signal: output.io.interrupted });
        }
      },
      [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
    };
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

function whyNobody(name: string, text: string, { owner }: DiskOwner): string {
  const hint = `'rocev2 disk serve --backend ${text}' does`;
  if (owner === undefined) return `waiting for somebody to serve '${name}': nobody owns it now (${hint})`;
  return `waiting for somebody to serve '${name}': ${owner} owns it, and does not say where it serves it (${hint})`;
}

async function resolveServer(address: string): Promise<ServerAddress> {
  const { host, port } = parseHostPort(address);
  return { host: await resolveHost(host), port };
}
