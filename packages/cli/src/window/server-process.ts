import process from 'node:process';
import { method, nicOptionsShape, serveParent } from '@rocev2/command';
import { type ControlChannel, ControlListener, exchangeAsServer } from 'rocev2/internal/cm';
import { crc32, RoceError } from 'rocev2/internal/core';
import { BlockServer, NaglePolicy, NoDelayPolicy, PoolOwner } from 'rocev2/internal/window';
import { z } from 'zod';
import { LOOPBACK, openWindowEnd, type WindowEnd } from './end.js';
import { WINDOW_POLICIES } from './policies.js';

interface Serving {
  readonly end: WindowEnd;
  readonly pool: { close(): Promise<void> };
}

let listener: ControlListener | undefined;
let serving: Promise<Serving> | undefined;
let failure: unknown;
let digest = 0;
let received = 0;

function onBlock(bytes: Uint8Array): void {
  const word = Buffer.alloc(4);
  word.writeUInt32BE(crc32(bytes));
  digest = crc32(word, digest);
  received += bytes.length;
}

const poolShape = {
  policy: z.enum(WINDOW_POLICIES),
  blocks: z.number().int(),
  blocksMax: z.number().int(),
  blockBytes: z.number().int(),
  mas: z.number(),
  matNs: z.number(),
  nic: z.object(nicOptionsShape),
};

const service = {
  listen: method(poolShape, async ({ policy, mas, matNs, nic, ...pool }) => {
    const release =
      policy === 'nagle'
        ? new NaglePolicy({ maxAvailableSegments: mas, maxAckTimeNs: matNs }, pool.blocks)
        : new NoDelayPolicy();
    const serve = async (channel: ControlChannel): Promise<Serving> => {
      const end = await openWindowEnd(channel, pool.blocksMax, exchangeAsServer, nic);
      const { blocks, blockBytes } = pool;
      const opened =
        policy === 'baseline'
          ? await BlockServer.open(end.link, { blocks, blockBytes, onBlock })
          : await PoolOwner.open(end.link, { ...pool, policy: release, onBlock });
      end.link.onFailure = (error) => {
        console.error(error.message);
        process.exit(1);
      };
      channel.send({ serving: true });
      return { end, pool: opened };
    };
    listener = await ControlListener.open(LOOPBACK, 0, {
      onPeer: (channel) => {
        if (serving !== undefined) {
          channel.refuse('this server already has a client');
          return;
        }
        serving = serve(channel);
        serving.catch((error: unknown) => {
          failure = error;
          serving = undefined;
          channel.close();
        });
      },
    });
    return listener.port;
  }),
  result: method({}, async () => {
    if (serving === undefined) throw new RoceError('ERR_ROCE_INVALID_STATE', 'no client has connected');
    const { end } = await serving;
    return { digest, received, controlMessages: end.link.counters.sent };
  }),
  failed: method({}, async () => {
    if (serving === undefined && failure !== undefined) throw failure;
  }),
  close: method({}, async () => {
    listener?.close();
    if (serving === undefined) return;
    const { end, pool } = await serving;
    await end.qp.close();
    await pool.close();
    await end.device.close();
  }),
};

export type WindowServerService = typeof service;

serveParent(service);
