/** The NBD gateway with the disk in the same process: in memory, in a file, behind another NBD server. */

import * as acceptance from './support/acceptance.js';
import { describeStack, gatewayAlone, type StackPlan } from './support/stack.js';

const SIZE = `${acceptance.DISK_BYTES}`;

/** A gateway whose disk is the export of another one. */
const gatewayBehindGateway: StackPlan = async (folder, listen, launch) => {
  await launch('nbd', '--listen', `unix:${folder}/store`, '--backend', 'memory', '--size', SIZE);
  await launch('nbd', '--listen', listen, '--backend', `nbd+unix:///disk0?socket=${folder}/store`);
};

describeStack('a disk in a file', gatewayAlone('file:FOLDER/disk', '--size', SIZE), (stack) => {
  acceptance.identity(stack);
  acceptance.verifiedFio(stack, ['v1', 'v2', 'v3', 'v4', 'mj', 'v6']);
  acceptance.qemuPatterns(stack);
  acceptance.copies(stack);
  acceptance.fileSystems(stack);
  acceptance.hostileClients(stack);
  acceptance.restarts(stack);
});

describeStack('a disk in memory', gatewayAlone('memory', '--size', SIZE), (stack) => {
  acceptance.identity(stack);
  acceptance.verifiedFio(stack, ['v1', 'v3', 'v6']);
  acceptance.qemuPatterns(stack);
  acceptance.hostileClients(stack);
});

describeStack('a disk behind an NBD server', gatewayBehindGateway, (stack) => {
  acceptance.identity(stack);
  acceptance.verifiedFio(stack, ['v1', 'v3', 'v4', 'v6']);
  acceptance.qemuPatterns(stack);
});
