//! What a Rust program may do with ort 2.0.0-rc.10, printed as lines "what = words".
//!     check MODELS        with ORT_DYLIB_PATH
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use half::f16;
use ort::inputs;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::builder::{GraphOptimizationLevel, PrepackedWeights};
use ort::session::{RunOptions, Session};
use ort::tensor::PrimitiveTensorElementType;
use ort::value::{DynValue, Map, MapValueType, Sequence, Tensor, TensorValueType};

type Outcome = ort::Result<()>;

struct Place {
    models: String,
}

impl Place {
    fn model(&self, name: &str) -> String {
        format!("{}/{name}.onnx", self.models)
    }

    fn session(&self, name: &str) -> ort::Result<Session> {
        Session::builder()?.with_intra_threads(2)?.commit_from_file(self.model(name))
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

fn code<T>(what: &str, result: ort::Result<T>) {
    match result {
        Ok(_) => println!("code {what} = none"),
        Err(error) => println!("code {what} = {:?}", error.code()),
    }
}

fn ports(place: &Place) -> Outcome {
    for name in ["mlp", "strings", "sequence_out", "map_out", "map_in", "lora"] {
        let session = place.session(name)?;
        for port in &session.inputs {
            println!("input {name} {} = {}", port.name, port.input_type);
        }
        for port in &session.outputs {
            println!("output {name} {} = {}", port.name, port.output_type);
        }
    }
    let session = place.session("mlp")?;
    let data = session.metadata()?;
    println!("metadata = {:?} {:?} {:?}", data.producer()?, data.domain()?, data.version()?);
    println!("author = {:?} {:?}", data.custom("author")?, data.custom("absent")?);
    Ok(())
}

fn runs(place: &Place) -> Outcome {
    let mut session = place.session("mlp")?;
    for rows in [1, 3, 32] {
        let outputs = session.run(inputs![floats(&[rows, 8])?])?;
        show::<f32>(&format!("mlp of {rows} rows"), &outputs[0])?;
    }
    code("another rank", session.run(inputs![floats(&[16])?]).map(|_| ()));
    let mut outputs = session.run(inputs!["x" => floats(&[2, 8])?])?;
    let kept = outputs.remove("y").expect("y").downcast::<TensorValueType<f32>>()?;
    drop(outputs);
    drop(session);
    println!("copy = {:?}", kept.clone().extract_tensor().1);
    let mut session = place.session("identity_float16")?;
    let halves = Tensor::from_array(([2usize], vec![f16::ONE, f16::NEG_INFINITY]))?;
    show::<f16>("float16", &session.run(inputs!["x" => halves])?["y"])?;
    let mut session = place.session("identity_bool")?;
    let flags = Tensor::from_array(([2usize], vec![true, false]))?;
    show::<bool>("bool", &session.run(inputs!["x" => flags])?["y"])?;
    Ok(())
}

fn options(place: &Place) -> Outcome {
    let bytes = std::fs::read(place.model("mlp")).expect("mlp");
    let container = PrepackedWeights::new();
    for level in [GraphOptimizationLevel::Disable, GraphOptimizationLevel::Level3] {
        let mut session = Session::builder()?
            .with_parallel_execution(true)?
            .with_memory_pattern(false)?
            .with_optimization_level(level)?
            .with_prepacked_weights(&container)?
            .with_log_id("some session")?
            .with_dimension_override("batch", 2)?
            .commit_from_memory(&bytes)?;
        show::<f32>("options", &session.run(inputs![floats(&[2, 8])?])?[0])?;
    }
    let bias: DynValue = Tensor::from_array(([4usize], vec![10f32, 20., 30., 40.]))?.into_dyn();
    let mut session = Session::builder()?
        .with_external_initializer("b", bias)?
        .commit_from_file(place.model("external"))?;
    show::<f32>("external weight", &session.run(inputs![floats(&[1, 8])?])?[0])?;
    for name in ["absent", "garbage", "unknown_operator"] {
        code(name, place.session(name));
    }
    Ok(())
}

fn containers(place: &Place) -> Outcome {
    let mut session = place.session("sequence_in")?;
    let sequence = Sequence::new([floats(&[2])?, floats(&[3])?])?;
    show::<f32>("joined", &session.run(inputs!["s" => sequence])?["y"])?;
    let mut session = place.session("map_out")?;
    let outputs = session.run(inputs!["x" => floats(&[2, 3])?])?;
    for map in outputs["z"].try_extract_sequence::<MapValueType<String, f32>>(&Allocator::default())?
    {
        let mut pairs: Vec<_> = map.extract_map().into_iter().collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        println!("map = {pairs:?}");
    }
    let mut session = place.session("map_in")?;
    let map = Map::<i64, f32>::new([(9i64, 0.5f32), (3, 1.5), (77, 8.0)])?;
    show::<f32>("vector", &session.run(inputs!["d" => map])?["y"])?;
    let mut session = place.session("strings")?;
    let left = Tensor::from_string_array(([2usize], &["größe", ""][..]))?;
    let right = Tensor::from_string_array(([2usize], &["ω", "!"][..]))?;
    let outputs = session.run(inputs!["b" => right, "a" => left])?;
    println!("texts = {:?}", outputs["y"].try_extract_strings()?);
    Ok(())
}

fn binding(place: &Place) -> Outcome {
    let mut session = place.session("mlp")?;
    let mut binding = session.create_binding()?;
    binding.bind_input("x", &floats(&[2, 8])?)?;
    let memory =
        MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::CPUOutput)?;
    binding.bind_output_to_device("y", &memory)?;
    show::<f32>("bound to a device", &session.run_binding(&binding)?["y"])?;
    Ok(())
}

fn cancelling(place: &Place) -> Outcome {
    let mut session = place.session("loop")?;
    let options = Arc::new(RunOptions::new()?);
    let stop = Arc::clone(&options);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stop.terminate()
    });
    let steps = Tensor::from_array(((), vec![1i64 << 40]))?;
    let feed = inputs!["n" => steps, "x" => floats(&[64, 64])?];
    code("terminated", session.run_with_options(feed, &*options).map(|_| ()));
    stopper.join().expect("stopper")
}

fn main() -> Outcome {
    let models = std::env::args().nth(1).expect("the folder of models");
    println!("committed = {}", ort::init().with_name("check").with_telemetry(false).commit()?);
    let place = Place { models };
    for check in [ports, runs, options, containers, binding, cancelling] {
        check(&place)?;
    }
    println!("end = 1");
    Ok(())
}
