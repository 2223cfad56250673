import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { complaintAboutNode } from '../src/node-version.js';

const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } };

it.each(['20.19.0', '20.20.2', '22.0.0', '25.1.0'])('Node.js %s will do', (version) => {
  expect(complaintAboutNode(version)).toBeUndefined();
});

it.each(['18.20.4', '20.18.3', '8.0.0'])('Node.js %s is told what is needed, as npm is', (version) => {
  const needed = engines.node.replace('>=', '');
  expect(complaintAboutNode(version)).toContain(`needs Node.js ${needed} or newer; this is ${version}`);
});
