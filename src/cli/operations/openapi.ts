import { writeFileSync } from 'node:fs';
import { buildOpenapi } from '../../http/openapi.js';
import { withDescription } from '../../http/pages.js';
import { createRoutes, type RoutePorts } from '../../http/routes.js';
import { StartError } from '../../lifecycle.js';
import { defineArguments, UsageError } from '../support/arguments.js';
import { defineCommand } from '../support/command.js';

export const main = defineCommand({
  name: 'openapi',
  ...defineArguments({
    usage: 'npm run openapi [-- FILE]',
    about: 'Writes the OpenAPI 3.1 document of the API to FILE, or to standard output.',
    options: {},
    examples: ['npm run openapi -- openapi.json'],
    notes: 'A running service returns the same document at /openapi.json. The command needs no servers.',
    read: (_, { operands: [file, ...more] }) => {
      if (more.length > 0) throw new UsageError('Pass at most one FILE');
      return { file };
    },
  }),
  run: async ({ print }, { file }) => {
    // No handler is called, so the routes need no ports.
    const text = JSON.stringify(buildOpenapi(withDescription(createRoutes({} as RoutePorts))), null, 2);
    if (file === undefined) return print(text);
    try {
      writeFileSync(file, `${text}\n`);
    } catch (cause) {
      throw new StartError(`Cannot write ${file}: ${(cause as Error).message}`, { cause });
    }
  },
});
