// What a Java program may do with com.microsoft.onnxruntime, printed as lines "what = words".
//   java -cp ... Check MODELS
import ai.onnxruntime.MapInfo;
import ai.onnxruntime.NodeInfo;
import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxMap;
import ai.onnxruntime.OnnxModelMetadata;
import ai.onnxruntime.OnnxSequence;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtLoraAdapter;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

public class Check {
  private static OrtEnvironment env;
  private static String models;

  private interface Action {
    void run() throws Exception;
  }

  private static String model(String name) {
    return models + File.separator + name + ".onnx";
  }

  private static float[] ramp(int count) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) values[i] = (i % 7 - 3) * 0.25f;
    return values;
  }

  private static OnnxTensor floats(int... dims) throws OrtException {
    int count = 1;
    long[] shape = new long[dims.length];
    for (int i = 0; i < dims.length; i++) {
      shape[i] = dims[i];
      count *= dims[i];
    }
    return OnnxTensor.createTensor(env, FloatBuffer.wrap(ramp(count)), shape);
  }

  private static void show(String what, OnnxValue value) throws OrtException {
    StringBuilder text = new StringBuilder(what + " =");
    if (value instanceof OnnxTensor) {
      OnnxTensor tensor = (OnnxTensor) value;
      text.append(" ").append(tensor.getInfo().type);
      for (long dim : tensor.getInfo().getShape()) text.append(" ").append(dim);
      if (tensor.getInfo().type == OnnxJavaType.FLOAT) {
        FloatBuffer buffer = tensor.getFloatBuffer();
        for (int i = 0; i < 64 && buffer.hasRemaining(); i++) text.append(" ").append(buffer.get());
      } else {
        Object array = tensor.getValue();
        String all = Arrays.deepToString(new Object[] {array});
        text.append(" ").append(all.replaceAll("[\\[\\],]", " "));
      }
    } else {
      text.append(" ").append(value.getInfo());
    }
    System.out.println(text);
  }

  private static void refused(String what, Action action) throws Exception {
    boolean failed = false;
    try {
      action.run();
    } catch (OrtException error) {
      failed = error.getMessage().length() > 10;
    }
    System.out.println("refused " + what + " = " + failed);
  }

  private static String describe(NodeInfo node) {
    if (node.getInfo() instanceof TensorInfo) {
      TensorInfo info = (TensorInfo) node.getInfo();
      return info.type + " " + Arrays.toString(info.getShape()) + " "
          + Arrays.toString(info.getDimensionNames());
    }
    if (node.getInfo() instanceof MapInfo) {
      MapInfo info = (MapInfo) node.getInfo();
      return "map " + info.keyType + " " + info.valueType;
    }
    return node.getInfo().getClass().getSimpleName();
  }

  private static void ports() throws Exception {
    for (String name : List.of("mlp", "strings", "sequence_out", "map_out", "overridable", "lora")) {
      try (OrtSession session = env.createSession(model(name))) {
        Map<String, NodeInfo> all = new TreeMap<>(session.getInputInfo());
        all.putAll(session.getOutputInfo());
        for (NodeInfo node : all.values()) {
          System.out.println("port " + name + " " + node.getName() + " = " + describe(node));
        }
        System.out.println("ports " + name + " = " + session.getNumInputs() + " "
            + session.getNumOutputs());
      }
    }
  }

  private static void metadata() throws Exception {
    try (OrtSession session = env.createSession(model("mlp"))) {
      OnnxModelMetadata data = session.getMetadata();
      System.out.println("metadata = " + data.getProducerName() + " " + data.getGraphName() + " "
          + data.getDomain() + " " + data.getDescription() + " " + data.getGraphDescription() + " "
          + data.getVersion() + " " + new TreeMap<>(data.getCustomMetadata()));
    }
  }

  private static void types() throws Exception {
    Map<String, Object> arrays = new LinkedHashMap<>();
    arrays.put("float", new float[] {1.5f, -2f, Float.POSITIVE_INFINITY});
    arrays.put("double", new double[] {1e300, -2});
    arrays.put("int8", new byte[] {-128, 127});
    arrays.put("int16", new short[] {-32768, 32767});
    arrays.put("int32", new int[] {Integer.MIN_VALUE, Integer.MAX_VALUE});
    arrays.put("int64", new long[] {Long.MIN_VALUE, Long.MAX_VALUE});
    arrays.put("bool", new boolean[] {true, false, true});
    arrays.put("string", new String[] {"", "größe", "a long one, longer than a small string"});
    for (Map.Entry<String, Object> entry : arrays.entrySet()) {
      try (OrtSession session = env.createSession(model("identity_" + entry.getKey()));
          OnnxTensor in = OnnxTensor.createTensor(env, entry.getValue());
          OrtSession.Result result = session.run(Map.of("x", in))) {
        show("identity " + entry.getKey(), result.get(0));
      }
    }
    ByteBuffer bytes = ByteBuffer.allocateDirect(4).order(ByteOrder.nativeOrder());
    bytes.putShort((short) 0x3c00).putShort((short) 0xc000).rewind();
    ShortBuffer halves = bytes.asShortBuffer();
    for (OnnxJavaType type : List.of(OnnxJavaType.FLOAT16, OnnxJavaType.BFLOAT16)) {
      try (OrtSession session = env.createSession(model("identity_" + type.name().toLowerCase()));
          OnnxTensor in = OnnxTensor.createTensor(env, halves, new long[] {2}, type);
          OrtSession.Result result = session.run(Map.of("x", in))) {
        show("identity " + type, result.get(0));
      }
    }
    try (OrtSession session = env.createSession(model("identity_uint8"));
        OnnxTensor in = OnnxTensor.createTensor(env, bytes, new long[] {4}, OnnxJavaType.UINT8);
        OrtSession.Result result = session.run(Map.of("x", in))) {
      show("identity uint8", result.get(0));
    }
  }

  private static OrtSession.SessionOptions options(int variant) throws OrtException {
    OrtSession.SessionOptions options = new OrtSession.SessionOptions();
    options.setLoggerId("some session");
    options.setSessionLogLevel(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL);
    if (variant == 1) {
      options.setOptimizationLevel(OrtSession.SessionOptions.OptLevel.NO_OPT);
      options.setExecutionMode(OrtSession.SessionOptions.ExecutionMode.PARALLEL);
      options.setInterOpNumThreads(2);
    } else if (variant == 2) {
      options.setIntraOpNumThreads(1);
      options.setMemoryPatternOptimization(false);
      options.setCPUArenaAllocator(false);
      options.setDeterministicCompute(true);
    } else if (variant == 3) {
      options.addConfigEntry("session.set_denormal_as_zero", "1");
      options.setSymbolicDimensionValue("batch", 2);
      options.addCPU(true);
    }
    return options;
  }

  private static void runs() throws Exception {
    byte[] bytes = Files.readAllBytes(Path.of(model("mlp")));
    for (int variant = 0; variant < 4; variant++) {
      try (OrtSession.SessionOptions options = options(variant);
          OrtSession session = variant % 2 == 0 ? env.createSession(bytes, options)
                                                : env.createSession(model("mlp"), options);
          OnnxTensor in = floats(2, 8);
          OrtSession.Result result = session.run(Map.of("x", in))) {
        show("options " + variant, result.get("y").get());
      }
    }
    OrtSession session = env.createSession(ByteBuffer.allocateDirect(bytes.length).put(bytes).flip(),
        new OrtSession.SessionOptions());
    for (int rows : new int[] {1, 0, 32}) {
      try (OnnxTensor in = floats(rows, 8); OrtSession.Result result = session.run(Map.of("x", in))) {
        show("mlp of " + rows + " rows", result.get(0));
      }
    }
    FloatBuffer own =
        ByteBuffer.allocateDirect(32).order(ByteOrder.nativeOrder()).asFloatBuffer();
    OnnxTensor out = OnnxTensor.createTensor(env, own, new long[] {2, 4});
    OnnxTensor in = floats(2, 8);
    session.run(Map.of("x", in), Map.of("y", out)).close();
    show("own output", out);
    refused("another rank", () -> session.run(Map.of("x", floats(16))));
    refused("an unknown input", () -> session.run(Map.of("nothing", in)));
    refused("another type",
        () -> session.run(Map.of("x", OnnxTensor.createTensor(env, new int[2][8]))));
    OrtSession.RunOptions runOptions = new OrtSession.RunOptions();
    runOptions.setRunTag("a tag");
    runOptions.setLogLevel(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL);
    runOptions.setTerminate(true);
    refused("terminated", () -> session.run(Map.of("x", in), runOptions));
    runOptions.setTerminate(false);
    try (OrtSession.Result result = session.run(Map.of("x", in), runOptions)) {
      show("let run again", result.get(0));
    }
    session.close();
  }

  private static void containers() throws Exception {
    try (OrtSession session = env.createSession(model("sequence_out"));
        OrtSession.Result result = session.run(Map.of("a", floats(2), "b", floats(3)))) {
      OnnxSequence sequence = (OnnxSequence) result.get("s").get();
      for (OnnxValue value : sequence.getValue()) show("item of " + value.getInfo(), value);
      show("length", result.get("n").get());
    }
    try (OrtSession session = env.createSession(model("map_out"));
        OrtSession.Result result = session.run(Map.of("x", floats(2, 3)))) {
      OnnxSequence sequence = (OnnxSequence) result.get(0);
      for (OnnxValue value : sequence.getValue()) {
        OnnxMap map = (OnnxMap) value;
        System.out.println("map " + map.size() + " = " + new TreeMap<>(map.getValue()));
      }
    }
    String[] left = {"", "größe", "long"};
    String[] right = {"-", "ω", "!"};
    try (OrtSession session = env.createSession(model("strings"));
        OnnxTensor a = OnnxTensor.createTensor(env, left);
        OnnxTensor b = OnnxTensor.createTensor(env, right);
        OrtSession.Result result = session.run(Map.of("a", a, "b", b))) {
      show("texts", result.get(0));
    }
  }

  private static void weights() throws Exception {
    try (OrtSession session = env.createSession(model("external"));
        OrtSession.Result result = session.run(Map.of("x", floats(1, 8)))) {
      show("external data", result.get(0));
    }
    OnnxTensor bias = OnnxTensor.createTensor(env, new float[] {10, 20, 30, 40});
    OrtSession.SessionOptions options = new OrtSession.SessionOptions();
    options.addInitializer("b", bias);
    try (OrtSession session = env.createSession(model("mlp"), options);
        OrtSession.Result result = session.run(Map.of("x", floats(1, 8)))) {
      show("weight of the caller", result.get(0));
    }
    OrtSession.SessionOptions external = new OrtSession.SessionOptions();
    external.addExternalInitializers(Map.of("b", bias));
    try (OrtSession session = env.createSession(model("external"), external);
        OrtSession.Result result = session.run(Map.of("x", floats(1, 8)))) {
      show("external weight of the caller", result.get(0));
    }
    try (OrtLoraAdapter adapter = OrtLoraAdapter.create(models + "/lora.onnx_adapter");
        OrtSession session = env.createSession(model("lora"));
        OrtSession.RunOptions runOptions = new OrtSession.RunOptions()) {
      try (OrtSession.Result result = session.run(Map.of("x", floats(2, 4)))) {
        show("without the adapter", result.get(0));
      }
      runOptions.addActiveLoraAdapter(adapter);
      try (OrtSession.Result result = session.run(Map.of("x", floats(2, 4)), runOptions)) {
        show("with the adapter", result.get(0));
      }
    }
    refused("a missing adapter", () -> OrtLoraAdapter.create(models + "/absent"));
  }

  private static void errors() throws Exception {
    for (String name : List.of("absent", "garbage", "unknown_operator")) {
      try {
        env.createSession(model(name)).close();
        System.out.println("code " + name + " = none");
      } catch (OrtException error) {
        System.out.println("code " + name + " = " + error.getCode());
      }
    }
    refused("no bytes", () -> env.createSession(new byte[0]));
    refused("an unknown provider", () -> new OrtSession.SessionOptions().addCUDA(0));
  }

  private static void threads() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(6);
    try (OrtSession shared = env.createSession(model("mlp"))) {
      List<Future<Double>> sums = new ArrayList<>();
      for (int worker = 0; worker < 6; worker++) {
        final boolean makes = worker % 3 == 2;
        Callable<Double> work = () -> {
          double sum = 0;
          for (int i = 0; i < 50; i++) {
            OrtSession session = makes ? env.createSession(model("mlp")) : shared;
            try (OnnxTensor in = floats(2, 8);
                OrtSession.Result result = session.run(Map.of("x", in))) {
              for (float value : ((OnnxTensor) result.get(0)).getFloatBuffer().array()) sum += value;
            }
            if (makes) session.close();
          }
          return sum;
        };
        sums.add(pool.submit(work));
      }
      for (int i = 0; i < sums.size(); i++) {
        System.out.println("thread " + i + " = " + sums.get(i).get());
      }
    }
    pool.shutdown();
  }

  private static void larger() throws Exception {
    for (String name : Files.readAllLines(Path.of(models, "larger.txt"))) {
      Path folder = Path.of(models, "larger", name);
      Map<String, OnnxTensor> feed = new HashMap<>();
      int index = 0;
      for (String line : Files.readAllLines(folder.resolve("feed.txt"))) {
        String[] words = line.split(" ");
        long[] dims = Arrays.stream(words).skip(2).mapToLong(Long::parseLong).toArray();
        byte[] bytes = Files.readAllBytes(folder.resolve(index++ + ".bin"));
        ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length).order(ByteOrder.nativeOrder());
        direct.put(bytes).rewind();
        OnnxTensor tensor = words[1].equals("float32")
            ? OnnxTensor.createTensor(env, direct.asFloatBuffer(), dims)
            : words[1].equals("int64") ? OnnxTensor.createTensor(env, direct.asLongBuffer(), dims)
                                       : OnnxTensor.createTensor(env, direct.asIntBuffer(), dims);
        feed.put(words[0], tensor);
      }
      try (OrtSession session = env.createSession(Files.readString(folder.resolve("path.txt")));
          OrtSession.Result result = session.run(feed)) {
        for (String output : session.getOutputNames()) {
          show(name + " " + output, result.get(output).get());
        }
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    models = arguments[0];
    env = OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL, "check");
    System.out.println("providers = " + OrtEnvironment.getAvailableProviders().toString()
        .contains("CPU"));
    System.out.println("training = " + OrtEnvironment.getEnvironment().isTrainingEnabled());
    ports();
    metadata();
    types();
    runs();
    containers();
    weights();
    errors();
    threads();
    larger();
    System.out.println("end = 1");
  }
}
