import { GroupBody, MembersBody, ProfileBody, ProfilesBody } from '../contracts/learners/groups.js';
import { type GroupReadPorts, GroupReadQuery, readGroupSkills } from '../services/classes/read-group.js';
import { readGroupSummary } from '../services/classes/read-group-summary.js';
import * as groups from '../services/groups/manage-groups.js';
import * as profiles from '../services/groups/manage-profiles.js';
import { handleJson } from './replies.js';
import { type Route, route } from './route.js';
import { allowRead, allowReadWithBody, allowWrite, largeBody, smallBody } from './route-rules.js';

export type GroupRoutePorts = groups.GroupPorts & profiles.ProfilePorts & GroupReadPorts;

const group = '/api/v1/groups/:group_id';
const profile = '/api/v1/learners/:user_id/profile';

export const createGroupRoutes = (ports: GroupRoutePorts): readonly Route[] => [
  route('GET /api/v1/groups', allowRead(groups.GroupsQuery), handleJson(groups.listGroups, ports)),
  route(`GET ${group}`, allowRead(), handleJson(groups.readGroup, ports)),
  route(
    `PUT ${group}`,
    allowWrite(largeBody(GroupBody), 'group.saved'),
    handleJson(groups.putGroup, ports, 'Group saved'),
  ),
  route(
    `DELETE ${group}`,
    allowWrite(null, 'group.deleted'),
    handleJson(groups.deleteGroup, ports, 'Group deleted'),
  ),
  route(
    `POST ${group}/members`,
    allowWrite(largeBody(MembersBody), 'group.members_changed'),
    handleJson(groups.changeMembers, ports, 'Members changed'),
  ),
  route(`GET ${group}/skills`, allowRead(GroupReadQuery), handleJson(readGroupSkills, ports)),
  route(`GET ${group}/summary`, allowRead(GroupReadQuery), handleJson(readGroupSummary, ports)),
  route(`GET ${profile}`, allowRead(), handleJson(profiles.readProfile, ports)),
  route(
    `PUT ${profile}`,
    allowWrite(smallBody(ProfileBody)),
    handleJson(profiles.putProfile, ports, 'Profile saved'),
  ),
  route(
    'POST /api/v1/learners/profiles',
    allowReadWithBody(largeBody(ProfilesBody)),
    handleJson(profiles.readProfiles, ports),
  ),
];
