/** The NBD gateway with the disk in the same process: in memory, in a file, behind another NBD server. */

import { afterAll, beforeAll } from 'vitest';
import { Program } from '../e2e/executable.js';
import * as acceptance from './support/acceptance.js';
import { gatewayAlone, Stack, type StackPlan } from './support/stack.js';
import { describeWithTools } from './support/tools.js';

const SIZE = `${acceptance.DISK_BYTES}`;

/** A gateway whose disk is the export of another one. */
const gatewayBehindGateway: StackPlan = async (folder, listen) => {
  const [store] = await gatewayAlone('memory', '--size', SIZE)(folder, `unix:${folder}/store`);
  const args = ['--backend', `nbd+unix:///disk0?socket=${folder}/store`];
  const program = Program.rocev2('disk', 'nbd', '--listen', listen, ...args);
  await program.writes('stderr', /Ctrl-C ends it\n/);
  return [store, program];
};

function withStack(title: string, plan: StackPlan, body: (stack: () => Stack) => void): void {
  describeWithTools(title, () => {
    let stack: Stack;
    beforeAll(async () => {
      stack = await Stack.start(plan);
    });
    afterAll(() => stack?.stop());
    body(() => stack);
  });
}

withStack('a disk in a file', gatewayAlone('file:FOLDER/disk', '--size', SIZE), (stack) => {
  acceptance.identity(stack);
  acceptance.verifiedFio(stack, ['v1', 'v2', 'v3', 'v4', 'mj', 'v6']);
  acceptance.qemuPatterns(stack);
  acceptance.copies(stack);
  acceptance.fileSystems(stack);
  acceptance.hostileClients(stack);
  acceptance.restarts(stack);
});

withStack('a disk in memory', gatewayAlone('memory', '--size', SIZE), (stack) => {
  acceptance.identity(stack);
  acceptance.verifiedFio(stack, ['v1', 'v3', 'v6']);
  acceptance.qemuPatterns(stack);
  acceptance.hostileClients(stack);
});

withStack('a disk behind an NBD server', gatewayBehindGateway, (stack) => {
  acceptance.identity(stack);
  acceptance.verifiedFio(stack, ['v1', 'v3', 'v4', 'v6']);
  acceptance.qemuPatterns(stack);
});
