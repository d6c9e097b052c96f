// What consoles and Kafka's tools ask through the AdminClient, beyond topics and groups: each answer by its name, and
// a refusal by the name of its error code.

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

class JavaConsole {
    static final int BROKER = 1;

    private final Admin admin;
    private final TopicPartition partition;
    private final TopicPartition unknown;
    private final Map<String, Object> answers = new LinkedHashMap<>();

    private JavaConsole(Admin admin, String topic) {
        this.admin = admin;
        this.partition = new TopicPartition(topic, 0);
        this.unknown = new TopicPartition("nowhere", 0);
    }

    static void ask(String bootstrap, String topic) throws Exception {
        try (Admin admin = Admin.create(JavaClient.properties(bootstrap, Map.of()))) {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(1), Optional.of((short) 1)))).all().get();
            JavaConsole console = new JavaConsole(admin, topic);
            console.askForAcls();
            console.askForSettings();
            console.askForUsers();
            console.askForTheCluster();
            console.askForMoves();
            console.askForTransactions();
            JavaClient.say(console.answers);
        }
    }

    private void note(String name, Callable<Object> question) throws Exception {
        Object answer;
        try {
            answer = question.call();
        } catch (ExecutionException refused) {
            answer = Errors.forException(refused.getCause()).name();
        }
        answers.put(name, plain(answer));
    }

    private static Object plain(Object answer) {
        if (answer instanceof Map<?, ?> map) {
            Map<String, Object> plain = new TreeMap<>();
            map.forEach((key, value) -> plain.put(key.toString(), plain(value)));
            return plain;
        }
        if (answer instanceof Collection<?> collection) {
            return collection.stream().map(JavaConsole::plain).toList();
        }
        return answer == null || answer instanceof Number ? answer : answer.toString();
    }

    private void askForAcls() throws Exception {
        AclBinding binding = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, partition.topic(), PatternType.LITERAL),
            new AccessControlEntry("User:somebody", "*", AclOperation.READ, AclPermissionType.ALLOW));
        note("acls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
        note("create_acls", () -> admin.createAcls(List.of(binding)).all().get());
        note("delete_acls", () -> admin.deleteAcls(List.of(AclBindingFilter.ANY)).all().get());
    }

    private void askForSettings() throws Exception {
        for (ConfigResource.Type type : ConfigResource.Type.values()) {
            if (type != ConfigResource.Type.UNKNOWN) {
                note("list_" + type, () -> names(type, admin.listConfigResources(Set.of(type), new ListConfigResourcesOptions()).all().get()));
            }
        }
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "a-group");
        ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "a-subscription");
        note("group_settings", () -> settings(group));
        note("metrics_settings", () -> settings(metrics));
        note("set_group", () -> set(group, "consumer.session.timeout.ms", "50000"));
        note("set_metrics", () -> set(metrics, "interval.ms", "60000"));
        note("delete_from_group", () -> delete(group, "consumer.session.timeout.ms"));
        note("delete_throttle", () -> delete(
            new ConfigResource(ConfigResource.Type.BROKER, Integer.toString(BROKER)), "leader.replication.throttled.rate"));
    }

    /** Of topics only this console's: others may use the broker too. */
    private Collection<String> names(ConfigResource.Type type, Collection<ConfigResource> resources) {
        Collection<String> names = new TreeSet<>();
        resources.forEach(resource -> names.add(resource.name()));
        names.removeIf(name -> type == ConfigResource.Type.TOPIC && !name.equals(partition.topic()));
        return names;
    }

    private Object settings(ConfigResource resource) throws Exception {
        List<String> names = new ArrayList<>();
        admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()
            .forEach(entry -> names.add(entry.name()));
        return names;
    }

    private Object set(ConfigResource resource, String name, String value) throws Exception {
        var change = new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
    }

    private Object delete(ConfigResource resource, String name) throws Exception {
        var change = new AlterConfigOp(new ConfigEntry(name, null), AlterConfigOp.OpType.DELETE);
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
    }

    private void askForUsers() throws Exception {
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "somebody"));
        var quota = new ClientQuotaAlteration(user, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6)));
        ScramCredentialInfo kind = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        note("quotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
        note("passwords", () -> admin.describeUserScramCredentials().all().get());
        note("passwords_of_one", () -> admin.describeUserScramCredentials(List.of("nobody")).all().get());
        note("set_quota", () -> admin.alterClientQuotas(List.of(quota)).all().get());
        note("set_password", () -> admin.alterUserScramCredentials(
            List.of(new UserScramCredentialUpsertion("somebody", kind, "secret"))).all().get());
    }

    private void askForTheCluster() throws Exception {
        note("features", () -> {
            Map<String, Object> levels = new TreeMap<>();
            admin.describeFeatures().featureMetadata().get().finalizedFeatures()
                .forEach((name, range) -> levels.put(name, range.maxVersionLevel()));
            return levels;
        });
        var raised = Map.of("group.version", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE));
        note("raise_feature", () ->
            admin.updateFeatures(raised, new UpdateFeaturesOptions().validateOnly(true)).all().get());
        note("quorum", () -> {
            var quorum = admin.describeMetadataQuorum().quorumInfo().get();
            return List.of(quorum.leaderId(), quorum.voters().size(), quorum.observers().size());
        });
        note("elect", () -> elect(Set.of(partition)));
        note("elect_all", () -> admin.electLeaders(ElectionType.PREFERRED, null).partitions().get());
        note("elect_unknown", () -> elect(Set.of(unknown)));
    }

    private Object elect(Set<TopicPartition> partitions) throws Exception {
        List<String> names = new ArrayList<>();
        admin.electLeaders(ElectionType.PREFERRED, partitions).partitions().get().values()
            .forEach(refused -> names.add(refused.map(error -> Errors.forException(error).name()).orElse("NONE")));
        return names;
    }

    private void askForMoves() throws Exception {
        String directory = admin.describeLogDirs(List.of(BROKER)).allDescriptions().get().get(BROKER)
            .entrySet().stream().filter(one -> holds(one.getValue())).findFirst().orElseThrow().getKey();
        note("moves", () -> admin.listPartitionReassignments().reassignments().get());
        note("stay", () -> move(partition, Optional.of(new NewPartitionReassignment(List.of(BROKER)))));
        note("move", () -> move(partition, Optional.of(new NewPartitionReassignment(List.of(7)))));
        note("move_nowhere", () -> move(partition, Optional.of(new NewPartitionReassignment(List.of(BROKER, BROKER)))));
        note("move_unknown", () -> move(unknown, Optional.of(new NewPartitionReassignment(List.of(BROKER)))));
        note("stop_moving", () -> move(partition, Optional.empty()));
        note("stay_in_directory", () -> moveTo(partition, directory));
        note("move_to_directory", () -> moveTo(partition, "/nowhere"));
    }

    private boolean holds(LogDirDescription directory) {
        return directory.replicaInfos().containsKey(partition);
    }

    private Object move(TopicPartition what, Optional<NewPartitionReassignment> where) throws Exception {
        return admin.alterPartitionReassignments(Map.of(what, where)).all().get();
    }

    private Object moveTo(TopicPartition what, String directory) throws Exception {
        TopicPartitionReplica replica = new TopicPartitionReplica(what.topic(), what.partition(), BROKER);
        return admin.alterReplicaLogDirs(Map.of(replica, directory)).all().get();
    }

    private void askForTransactions() throws Exception {
        note("transactions", () -> admin.listTransactions().all().get());
        note("producers", () -> admin.describeProducers(List.of(partition)).all().get().get(partition).activeProducers());
    }
}
