//! What a Rust program may do with ort 2.0.0-rc.15, printed as lines "what = words".
//!     check MODELS        with ORT_DYLIB_PATH
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use half::{bf16, f16};
use ort::editor::{Graph, Model, Node, Opset, ONNX_DOMAIN};
use ort::environment::Environment;
use ort::inputs;
use ort::logging::LogLevel;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::operator::{
    BoxedKernel, ComputeContext, KernelContext, Operator, OperatorDomain, OperatorInput,
    OperatorOutput, ShapeInferenceContext,
};
use ort::session::builder::{GraphOptimizationLevel, PrepackedWeights};
use ort::session::{Adapter, OutputSelector, RunOptions, Session};
use ort::value::{
    DynTensorValueType, DynValue, Map, Outlet, PrimitiveTensorElementType, Sequence, Shape,
    SymbolicDimensions, Tensor, TensorElementType, TensorRef, TensorValueType, ValueType,
};

type Outcome = ort::Result<()>;

struct Place {
    env: Environment,
    models: String,
}

impl Place {
    fn model(&self, name: &str) -> String {
        format!("{}/{name}.onnx", self.models)
    }

    fn session(&self, name: &str) -> ort::Result<Session> {
        Session::builder(&self.env)?.with_intra_threads(2)?.commit_from_file(self.model(name))
    }
}

fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i as f32 % 7.0 - 3.0) * 0.25).collect()
}

fn floats(dims: &[usize]) -> ort::Result<Tensor<f32>> {
    Tensor::from_array((dims.to_vec(), ramp(dims.iter().product())))
}

fn show<T: PrimitiveTensorElementType + Debug>(what: &str, value: &DynValue) -> Outcome {
    let (shape, data) = value.try_extract_tensor::<T>()?;
    let words: Vec<String> = data.iter().take(64).map(|x| format!("{x:?}")).collect();
    println!("{what} = {:?} {}", &shape[..], words.join(" "));
    Ok(())
}

fn refused<T>(what: &str, result: ort::Result<T>) {
    match result {
        Ok(_) => println!("refused {what} = no"),
        Err(error) => println!("refused {what} = {}", error.message().len() > 10),
    }
}

fn code<T>(what: &str, result: ort::Result<T>) {
    match result {
        Ok(_) => println!("code {what} = none"),
        Err(error) => println!("code {what} = {:?}", error.code()),
    }
}

fn ports(place: &Place) -> Outcome {
    for name in ["mlp", "strings", "sequence_out", "map_out", "map_in", "overridable", "lora"] {
        let session = place.session(name)?;
        for port in session.inputs().iter().chain(session.outputs()) {
            println!("port {name} {} = {}", port.name(), port.dtype());
        }
        for extra in session.overridable_initializers() {
            println!("overridable {name} = {} {}", extra.name(), extra.dtype());
        }
        println!("opset {name} = {:?}", session.opset_for_domain("").is_some());
    }
    Ok(())
}

fn metadata(place: &Place) -> Outcome {
    let session = place.session("mlp")?;
    let data = session.metadata()?;
    println!(
        "metadata = {:?} {:?} {:?} {:?} {:?} {:?}",
        data.producer(),
        data.name(),
        data.domain(),
        data.description(),
        data.graph_description(),
        data.version()
    );
    let mut keys = data.custom_keys()?;
    keys.sort();
    println!("metadata keys = {keys:?}");
    for key in ["author", "empty", "absent"] {
        println!("metadata {key} = {:?}", data.custom(key));
    }
    Ok(())
}

fn identity<T: PrimitiveTensorElementType + Debug + Clone + 'static>(
    place: &Place,
    name: &str,
    values: Vec<T>,
) -> Outcome {
    let mut session = place.session(&format!("identity_{name}"))?;
    for count in [values.len(), 0] {
        let part = Tensor::from_array(([count], values[..count].to_vec()))?;
        let outputs = session.run(inputs!["x" => part])?;
        show::<T>(&format!("identity {name} {count}"), &outputs["y"])?;
    }
    Ok(())
}

fn types(place: &Place) -> Outcome {
    identity(place, "float", vec![1.5f32, -2., f32::INFINITY])?;
    identity(place, "double", vec![1e300f64, -2.])?;
    identity(place, "int8", vec![i8::MIN, i8::MAX])?;
    identity(place, "int16", vec![i16::MIN, i16::MAX])?;
    identity(place, "int32", vec![i32::MIN, i32::MAX])?;
    identity(place, "int64", vec![i64::MIN, i64::MAX])?;
    identity(place, "uint8", vec![0u8, u8::MAX])?;
    identity(place, "uint16", vec![0u16, u16::MAX])?;
    identity(place, "uint32", vec![0u32, u32::MAX])?;
    identity(place, "uint64", vec![0u64, u64::MAX])?;
    identity(place, "bool", vec![true, false, true])?;
    identity(place, "float16", vec![f16::ONE, f16::NEG_INFINITY])?;
    identity(place, "bfloat16", vec![bf16::ONE, bf16::NEG_INFINITY])
}

fn runs(place: &Place) -> Outcome {
    let mut session = place.session("mlp")?;
    for rows in [1, 3, 0, 32] {
        let outputs = session.run(inputs![floats(&[rows, 8])?])?;
        show::<f32>(&format!("mlp of {rows} rows"), &outputs[0])?;
    }
    let data = ramp(16);
    let view = TensorRef::from_array_view(([2usize, 8], &data[..]))?;
    show::<f32>("a view", &session.run(inputs!["x" => view])?["y"])?;

    let own = Tensor::<f32>::new(&Allocator::default(), [2usize, 4])?;
    let options = RunOptions::new()?.with_outputs(OutputSelector::default().preallocate("y", own));
    for _ in 0..2 {
        let outputs = session.run_with_options(inputs![floats(&[2, 8])?], &options)?;
        show::<f32>("own output", &outputs[0])?;
    }
    code("another rank", session.run(inputs![floats(&[16])?]).map(|_| ()));
    code("another shape", session.run(inputs![floats(&[2, 9])?]).map(|_| ()));
    let whole = Tensor::from_array(([2usize, 8], vec![1i32; 16]))?;
    code("another type", session.run(inputs![whole]).map(|_| ()));
    code("an unknown input", session.run(inputs!["z" => floats(&[1, 8])?]).map(|_| ()));
    // A result outlives its session.
    let mut outputs = session.run(inputs![floats(&[2, 8])?])?;
    let kept = outputs.remove("y").expect("y");
    drop(outputs);
    drop(session);
    show::<f32>("after its session", &kept)?;
    let copy = kept.downcast::<TensorValueType<f32>>()?.clone();
    println!("copy = {:?}", copy.extract_tensor().1);
    Ok(())
}

fn options(place: &Place) -> Outcome {
    let bytes = std::fs::read(place.model("mlp")).expect("mlp");
    let levels = [
        GraphOptimizationLevel::Disable,
        GraphOptimizationLevel::Level1,
        GraphOptimizationLevel::Level2,
        GraphOptimizationLevel::Level3,
    ];
    for (i, level) in levels.into_iter().enumerate() {
        let mut builder = Session::builder(&place.env)?
            .with_parallel_execution(i % 2 == 0)?
            .with_memory_pattern(false)?
            .with_optimization_level(level)?
            .with_inter_threads(2)?
            .with_intra_threads(i)?
            .with_log_id("some session")?
            .with_deterministic_compute(true)?
            .with_dimension_override("batch", 2)?
            .with_config_entry("session.intra_op.allow_spinning", "0")?;
        let mut session = if i % 2 == 0 {
            builder.commit_from_memory(&bytes)?
        } else {
            builder.clone().commit_from_file(place.model("mlp"))?
        };
        drop(builder);
        show::<f32>(&format!("options {i}"), &session.run(inputs![floats(&[2, 8])?])?[0])?;
    }
    let mut builder = Session::builder(&place.env)?;
    let borrowing = builder.commit_from_memory_directly(&bytes)?;
    println!("bytes used directly = {}", borrowing.inputs()[0].name());
    drop(borrowing);

    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let logger = Arc::new(move |_: LogLevel, _: &str, _: &str, _: &str, _: &str| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let mut logged = Session::builder(&place.env)?
        .with_logger(logger)?
        .with_log_level(LogLevel::Verbose)?
        .commit_from_file(place.model("mlp"))?;
    show::<f32>("logged", &logged.run(inputs![floats(&[2, 8])?])?[0])?;
    drop(logged);
    println!("log = {} {}", calls.load(Ordering::Relaxed) > 0, Arc::strong_count(&calls));
    Ok(())
}

fn weights(place: &Place) -> Outcome {
    let mut session = place.session("external")?;
    show::<f32>("external data", &session.run(inputs![floats(&[1, 8])?])?[0])?;
    let data: Arc<[u8]> = std::fs::read(format!("{}/external.data", place.models))
        .expect("external.data")
        .into();
    let bytes = std::fs::read(place.model("external")).expect("external");
    let mut session = Session::builder(&place.env)?
        .with_external_initializer_file_in_memory("external.data", data)?
        .commit_from_memory(&bytes)?;
    show::<f32>("external data in memory", &session.run(inputs![floats(&[1, 8])?])?[0])?;
    let bias = || -> ort::Result<DynValue> {
        Ok(Tensor::from_array(([4usize], vec![10f32, 20., 30., 40.]))?.into_dyn())
    };
    let mut session = Session::builder(&place.env)?
        .with_initializer("b", bias()?)?
        .commit_from_file(place.model("mlp"))?;
    show::<f32>("weight of the caller", &session.run(inputs![floats(&[1, 8])?])?[0])?;
    let mut session = Session::builder(&place.env)?
        .with_external_initializer("b", bias()?)?
        .commit_from_file(place.model("external"))?;
    show::<f32>("external weight of the caller", &session.run(inputs![floats(&[1, 8])?])?[0])?;

    let container = PrepackedWeights::new();
    let mut builder = Session::builder(&place.env)?.with_prepacked_weights(&container)?;
    let mut first = builder.commit_from_file(place.model("mlp"))?;
    let mut second = builder.commit_from_file(place.model("mlp"))?;
    drop((container, builder));
    show::<f32>("prepacked", &first.run(inputs![floats(&[1, 8])?])?[0])?;
    drop(first);
    show::<f32>("prepacked again", &second.run(inputs![floats(&[1, 8])?])?[0])?;

    let mut session = place.session("lora")?;
    show::<f32>("without the adapter", &session.run(inputs!["x" => floats(&[2, 4])?])?[0])?;
    let path = format!("{}/lora.onnx_adapter", place.models);
    let bytes = std::fs::read(&path).expect("adapter");
    for adapter in [Adapter::from_file(&path, None)?, Adapter::from_memory(&bytes, None)?] {
        let mut options = RunOptions::new()?;
        options.add_adapter(&adapter)?;
        drop(adapter);
        let outputs = session.run_with_options(inputs!["x" => floats(&[2, 4])?], &options)?;
        show::<f32>("with the adapter", &outputs[0])?;
    }
    refused("a missing adapter", Adapter::from_file("absent", None));
    Ok(())
}

fn containers(place: &Place) -> Outcome {
    let mut session = place.session("sequence_out")?;
    let outputs = session.run(inputs!["a" => floats(&[2])?, "b" => floats(&[3])?])?;
    for item in outputs["s"].try_extract_sequence::<TensorValueType<f32>>()? {
        println!("item = {:?}", item.extract_tensor());
    }
    show::<i64>("length", &outputs["n"])?;
    let mut session = place.session("sequence_in")?;
    let sequence = Sequence::new([floats(&[2])?, floats(&[3])?])?;
    show::<f32>("joined", &session.run(inputs!["s" => sequence])?["y"])?;
    code("a tensor for a sequence", session.run(inputs!["s" => floats(&[2])?]).map(|_| ()));
    let mut session = place.session("map_out")?;
    let outputs = session.run(inputs!["x" => floats(&[2, 3])?])?;
    for map in outputs["z"].try_extract_sequence::<ort::value::MapValueType<String, f32>>()? {
        println!("map = {:?}", map.extract_key_values());
    }
    let mut session = place.session("map_in")?;
    let map = Map::<i64, f32>::new([(9i64, 0.5f32), (3, 1.5), (77, 8.0)])?;
    show::<f32>("vector", &session.run(inputs!["d" => map])?["y"])?;
    let mut session = place.session("strings")?;
    let left = Tensor::from_string_array(([3usize], &["", "größe", "long"][..]))?;
    let right = Tensor::from_string_array(([3usize], &["-", "ω", "!"][..]))?;
    let outputs = session.run(inputs!["b" => right, "a" => left])?;
    println!("texts = {:?}", outputs["y"].try_extract_strings()?);
    Ok(())
}

fn binding(place: &Place) -> Outcome {
    let mut session = place.session("mlp")?;
    let mut binding = session.create_binding()?;
    let mut data = floats(&[2, 8])?;
    binding.bind_input("x", &data)?;
    binding.bind_output("y", Tensor::<f32>::new(&Allocator::default(), [2usize, 4])?)?;
    show::<f32>("bound", &session.run_binding(&binding)?["y"])?;
    data.extract_tensor_mut().1[3] = 9.;
    binding.bind_input("x", &data)?;
    show::<f32>("bound again", &session.run_binding(&binding)?["y"])?;
    binding.clear_outputs();
    let memory =
        MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::CPUOutput)?;
    binding.bind_output_to_device("y", &memory)?;
    binding.synchronize_inputs()?;
    show::<f32>("bound to a device", &session.run_binding(&binding)?["y"])?;
    binding.synchronize_outputs()?;
    let allocator = Allocator::new(
        &session,
        MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::Default)?,
    )?;
    drop(session);
    let block = Tensor::<f32>::new(&allocator, [3usize])?;
    println!("allocated = {:?}", &block.shape()[..]);
    Ok(())
}

fn errors(place: &Place) -> Outcome {
    for name in ["absent", "garbage", "unknown_operator"] {
        code(name, place.session(name));
    }
    code("no bytes", Session::builder(&place.env)?.commit_from_memory(&[]));
    let mut builder = Session::builder(&place.env)?;
    builder.canceler().cancel()?;
    code("cancelled load", builder.commit_from_file(place.model("mlp")));
    let negative = Tensor::<f32>::new(&Allocator::default(), [-3i64]);
    refused("a negative size", negative);
    refused("a short array", Tensor::from_array(([3usize], vec![1f32])));
    Ok(())
}

fn cancelling(place: &Place) -> Outcome {
    let mut session = place.session("loop")?;
    let steps = |n: i64| Tensor::from_array(((), vec![n]));
    let options = Arc::new(RunOptions::new()?);
    let stop = Arc::clone(&options);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stop.terminate()
    });
    let feed = inputs!["n" => steps(1 << 40)?, "x" => floats(&[64, 64])?];
    refused("terminated", session.run_with_options(feed, &*options).map(|_| ()));
    stopper.join().expect("stopper")?;
    options.unterminate()?;
    let feed = inputs!["n" => steps(3)?, "x" => floats(&[64, 64])?];
    let outputs = session.run_with_options(feed, &*options)?;
    show::<f32>("let run again", &outputs["y"])
}

fn threads(place: &Place) -> Outcome {
    let sums: Vec<f32> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker| {
                scope.spawn(move || -> ort::Result<f32> {
                    let mut sum = 0.0;
                    let mut session = place.session("mlp")?;
                    for i in 0..50 {
                        if worker % 2 == 1 && i % 5 == 0 {
                            session = place.session("mlp")?;
                        }
                        let outputs = session.run(inputs![floats(&[2, 8])?])?;
                        sum += outputs[0].try_extract_tensor::<f32>()?.1.iter().sum::<f32>();
                    }
                    Ok(sum)
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().expect("worker").expect("run")).collect()
    });
    println!("threads = {sums:?}");
    Ok(())
}

struct Blend;

impl Operator for Blend {
    type Kernel<'attr> = BoxedKernel<'attr>;

    fn name(&self) -> &str {
        "Blend"
    }
    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [TensorElementType::Float32; 2].map(OperatorInput::required)
    }
    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Float32)]
    }
    fn infer_shape(&self, context: &mut ShapeInferenceContext) -> Outcome {
        context.set_output(0, &context.inputs()[0].clone())
    }
    fn create_kernel<'attr>(
        &self,
        context: &KernelContext<'attr>,
    ) -> ort::Result<Self::Kernel<'attr>> {
        let share = context.get::<f32>("share").expect("share");
        let weights = context.constant_input::<DynTensorValueType>(1)?;
        let count = weights.try_extract_tensor::<f32>()?.1.len();
        println!("kernel {} = {share} {count}", context.node_name()?);
        Ok(Box::new(move |context: &ComputeContext| {
            let missing = || ort::Error::new("a value is missing");
            let x = context.input(0)?.ok_or_else(missing)?;
            let w = context.input(1)?.ok_or_else(missing)?;
            let (shape, x) = x.try_extract_tensor::<f32>()?;
            let (_, w) = w.try_extract_tensor::<f32>()?;
            let mut y = context.output(0, shape.to_vec())?.ok_or_else(missing)?;
            let (_, y) = y.try_extract_tensor_mut::<f32>()?;
            let total = AtomicUsize::new(0);
            context.par_for(y.len(), 0, |_| {
                total.fetch_add(1, Ordering::Relaxed);
            })?;
            if total.into_inner() != y.len() {
                return Err(ort::Error::new("par_for did not call for all"));
            }
            for i in 0..y.len() {
                y[i] = share * x[i] + (1.0 - share) * w[i];
            }
            Ok(())
        }))
    }
}

struct Steps;

impl Operator for Steps {
    type Kernel<'attr> = BoxedKernel<'attr>;

    fn name(&self) -> &str {
        "Steps"
    }
    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        [OperatorInput::required(TensorElementType::Float32)]
    }
    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        [OperatorOutput::required(TensorElementType::Int64)]
    }
    fn create_kernel<'attr>(
        &self,
        context: &KernelContext<'attr>,
    ) -> ort::Result<Self::Kernel<'attr>> {
        let sizes = context.get::<Vec<i64>>("sizes").expect("sizes");
        Ok(Box::new(move |context: &ComputeContext| {
            let missing = || ort::Error::new("a value is missing");
            let x = context.input(0)?.ok_or_else(missing)?;
            let (shape, x) = x.try_extract_tensor::<f32>()?;
            if x[0] > 100.0 {
                return Err(ort::Error::new("too large a value for Steps"));
            }
            let mut y = context.output(0, shape.to_vec())?.ok_or_else(missing)?;
            let (_, y) = y.try_extract_tensor_mut::<i64>()?;
            for i in 0..y.len() {
                y[i] = (x[i] * 100.0) as i64 * sizes[i % sizes.len()];
            }
            Ok(())
        }))
    }
}

fn operators(place: &Place) -> Outcome {
    let mut session = {
        let domain = OperatorDomain::new("test.clients")?.add(Blend)?.add(Steps)?;
        Session::builder(&place.env)?
            .with_operators(domain)?
            .commit_from_file(place.model("custom"))?
    };
    show::<i64>("custom", &session.run(inputs![floats(&[6])?])?[0])?;
    let large = Tensor::from_array(([6usize], vec![1e6f32; 6]))?;
    let failed = session.run(inputs![large]).map(|_| ()).expect_err("an error");
    println!("error of a kernel = {}", failed.message().contains("too large a value for Steps"));
    show::<i64>("custom again", &session.run(inputs![floats(&[6])?])?[0])?;
    refused("without its operators", place.session("custom"));
    Ok(())
}

fn outlet(name: &str, size: i64) -> Outlet {
    let kind = ValueType::Tensor {
        ty: TensorElementType::Float32,
        shape: Shape::new([size]),
        dimension_symbols: SymbolicDimensions::empty(1),
    };
    Outlet::new(name, kind)
}

fn editor(place: &Place) -> Outcome {
    // Only tensors of some size may stay where they are.
    for (size, is_external) in [(5usize, false), (64, true)] {
        let mut graph = Graph::new()?;
        graph.set_inputs([outlet("x", size as i64)])?;
        graph.set_outputs([outlet("y", size as i64)])?;
        graph.add_node(Node::new("Mul", ONNX_DOMAIN, "scale", ["x", "w"], ["y"], [])?)?;
        let mut weight = Tensor::<f32>::new(&Allocator::default(), [size])?;
        weight.extract_tensor_mut().1.copy_from_slice(&ramp(size));
        graph.add_initializer("w", weight, is_external)?;
        let mut model = Model::new([Opset::new(ONNX_DOMAIN, 20)?])?;
        model.set_graph(graph)?;
        let mut session = model.into_session(&Session::builder(&place.env)?)?;
        show::<f32>("edited", &session.run(inputs![floats(&[size])?])?["y"])?;
    }
    Ok(())
}

fn larger(place: &Place) -> Outcome {
    let read = |path: String| std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let text = |path: String| String::from_utf8(read(path)).expect("UTF-8");
    for name in text(format!("{}/larger.txt", place.models)).lines() {
        let folder = format!("{}/larger/{name}", place.models);
        let mut feed: Vec<(String, DynValue)> = Vec::new();
        for (i, line) in text(format!("{folder}/feed.txt")).lines().enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            let dims: Vec<i64> = words[2..].iter().map(|w| w.parse().expect("a size")).collect();
            let bytes = read(format!("{folder}/{i}.bin"));
            let value = match words[1] {
                "float32" => {
                    let data = bytes.chunks(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap()));
                    Tensor::from_array((dims, data.collect::<Vec<_>>()))?.into_dyn()
                }
                "int64" => {
                    let data = bytes.chunks(8).map(|b| i64::from_ne_bytes(b.try_into().unwrap()));
                    Tensor::from_array((dims, data.collect::<Vec<_>>()))?.into_dyn()
                }
                _ => {
                    let data = bytes.chunks(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap()));
                    Tensor::from_array((dims, data.collect::<Vec<_>>()))?.into_dyn()
                }
            };
            feed.push((words[0].to_string(), value));
        }
        let path = text(format!("{folder}/path.txt"));
        let mut session = Session::builder(&place.env)?.commit_from_file(path)?;
        for (output, value) in &session.run(feed)? {
            if value.dtype().tensor_type() == Some(TensorElementType::Float32) {
                show::<f32>(&format!("{name} {output}"), &value)?;
            }
        }
    }
    Ok(())
}

fn main() -> Outcome {
    let models = std::env::args().nth(1).expect("the folder of models");
    let env = ort::init().with_name("check").with_telemetry(false).build()?;
    env.set_log_level(LogLevel::Fatal);
    let place = Place { env, models };
    println!("info = {}", !ort::info().is_empty());
    for check in [
        ports, metadata, types, runs, options, weights, containers, binding, errors, cancelling,
        threads, operators, editor, larger,
    ] {
        check(&place)?;
    }
    println!("end = 1");
    Ok(())
}
