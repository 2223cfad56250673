import { serveParent } from '@rocev2/command';
import { COMMANDS } from '../commands.js';
import { runCli } from '../run.js';
import { commandService } from './command-service.js';

serveParent(commandService((args, io) => runCli(COMMANDS, args, io)));
