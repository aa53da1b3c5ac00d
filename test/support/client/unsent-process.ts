/** A platform that stores answers in a file and cannot reach a service. Prints a line when it can be killed. */
import { Skilltrace } from '../../../src/client/index.js';
import { fileStore } from './file-store.js';

const [file = '', baseUrl = '', user = '', count = ''] = process.argv.slice(2);
const client = new Skilltrace({ baseUrl, store: fileStore(file) });
for (let i = 0; i < Number(count); i++)
  await client.track({ user_id: user, skill_id: 'algebra', is_correct: true, item_id: `item-${i}` });
process.stdout.write('queued\n');
