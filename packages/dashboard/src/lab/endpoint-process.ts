import { method, serveParent } from '@rocev2/command';
import { RoceError } from 'rocev2/internal/core';
import type { RateControlOptions } from 'rocev2/internal/dcqcn';
import type { RecoveryName } from 'rocev2/internal/retransmit';
import { z } from 'zod';
import { LAB_OPS } from '../messages/lab-messages.js';
import { LabEndpoint } from './lab-endpoint.js';

let current: LabEndpoint | undefined;

function endpoint(): LabEndpoint {
  if (current === undefined) throw new RoceError('ERR_ROCE_INVALID_STATE', 'the endpoint is not open');
  return current;
}

const target = z.object({ remoteAddr: z.bigint(), rkey: z.number().int() });
const flow = z.object({ qpn: z.number().int(), psn: z.number().int() });

const service = {
  open: method(
    { address: z.string(), switchPort: z.string(), rateBps: z.number(), messageBytes: z.number().int() },
    async ({ address, switchPort, rateBps, messageBytes }) => {
      current = await LabEndpoint.open(address, switchPort, rateBps, messageBytes);
      return current.target;
    },
  ),
  renew: method({ count: z.number().int() }, ({ count }) => endpoint().renew(count)),
  connect: method(
    {
      peerAddress: z.string(),
      peerFlows: z.array(flow),
      mtu: z.number().int(),
      windowPackets: z.number().int(),
      recovery: z.custom<RecoveryName>(),
      rateControl: z.custom<RateControlOptions>(),
      timeout: z.number().int(),
    },
    ({ peerAddress, peerFlows, ...options }) => endpoint().connect(peerAddress, peerFlows, options),
  ),
  start: method({ op: z.enum(LAB_OPS), target }, (args) => endpoint().start(args.op, args.target)),
  sample: method({}, () => endpoint().sample()),
  packets: method({}, () => endpoint().packets()),
  forgetPackets: method({}, () => endpoint().forgetPackets()),
  close: method({}, async () => {
    await current?.close();
    current = undefined;
  }),
};

export type LabEndpointService = typeof service;

serveParent(service);
