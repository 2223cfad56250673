/** The manager of `rocev2 extents up` as a process of its own. */

import { z } from 'zod';
import { CODE_NAMES, type ManagerServer, serveManager } from '../../extents/index.js';
import { EXTENT_TRANSPORTS } from '../../extents/live/peers.js';
import { method } from '../../processes/calls.js';
import { serveParent } from '../../processes/serve-parent.js';
import { openDevice } from '../../verbs/open-device.js';
import { nicOptionsShape } from '../nic-options.js';
import { type SecureFlags, secureOf } from '../secure-options.js';

let manager: ManagerServer | undefined;

const service = {
  start: method(
    {
      ...nicOptionsShape,
      secure: z.custom<SecureFlags>(),
      bind: z.string(),
      folder: z.string(),
      port: z.number(),
      extentBytes: z.number(),
      code: z.enum(CODE_NAMES).optional(),
      codeAfterMs: z.number(),
      transport: z.enum(EXTENT_TRANSPORTS),
    },
    async ({ bind, folder, port, extentBytes, code, codeAfterMs, transport, secure, ...nic }) => {
      const device = await openDevice({ address: bind, udpPort: 0, ...nic, ...(await secureOf(secure)) });
      manager = await serveManager({
        device,
        folder,
        port,
        extentBytes,
        codeAfterMs,
        transport,
        ...(code !== undefined && { code }),
      });
      return { address: manager.address, cluster: (await manager.status()).cluster };
    },
  ),
  close: method({}, async () => {
    await manager?.close();
  }),
};

/** For the parent's calls. */
export type ManagerService = typeof service;

serveParent(service);
